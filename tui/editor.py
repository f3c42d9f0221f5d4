"""The user's editor, at a line of a file."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import PurePath

PLUS = ("+{line}", "{file}")
"""Editors that take a line as vi, Emacs, nano and most others in a terminal do."""

ARGUMENTS = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "windsurf"), ("--goto", "{file}:{line}")),
    **dict.fromkeys(("hx", "helix", "subl", "zed"), ("{file}:{line}",)),
    **dict.fromkeys(("pycharm", "idea", "charm"), ("--line", "{line}", "{file}")),
}
"""Arguments by which other editors take a line."""


class NoEditorError(Exception):
    """The reason why no editor can be started."""


def editor_command(environment: Mapping[str, str], file: str, line: int) -> list[str]:
    """The command that opens a file at a line, which counts from 1, in `$VISUAL` or `$EDITOR`; no shell reads it.

    Raises:
        NoEditorError: neither is set, or it cannot be found.
    """
    words = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        command = shlex.split(words)
    except ValueError as error:
        raise NoEditorError(f"$EDITOR is {words!r}: {error}") from None
    if not command:
        raise NoEditorError("Set $EDITOR to an editor.")
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise NoEditorError(f"$EDITOR is {words!r}, which is not installed.")
    # An absolute path is no option, whatever the file is called.
    place = {"file": os.path.abspath(file), "line": line}
    return [*command, *(part.format(**place) for part in ARGUMENTS.get(PurePath(command[0]).name, PLUS))]
