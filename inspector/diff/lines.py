"""Places in the user's files as they are compared: by the text of the line and its function, never by number."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...parsers.source import Frame
from ..ir.program import Program

Line = tuple[str, str]
"""The function, and the text of the line without its comment; both empty where nothing is known."""

NOWHERE: Line = ("", "")

_OUTER = re.compile(r"[\w.<>]*>\.")
"""What Python puts before the name of a function that is in another one."""


class Lines:
    """The frames of one capture with their lines' texts, each file split once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._files: dict[str, list[str]] = {}
        self._known: dict[Frame, Line] = {}

    def of(self, stack: Iterable[Frame]) -> tuple[Line, ...]:
        """The lines of a stack, innermost first."""
        return tuple(map(self._of_one, stack))

    def _of_one(self, frame: Frame) -> Line:
        if frame not in self._known:
            lines = self._files.get(frame.file)
            if lines is None:
                source = self._program.file(frame.file)
                lines = [] if source is None else source.data.decode("utf-8", "replace").split("\n")
                self._files[frame.file] = lines
            text = lines[frame.line - 1].partition(" #")[0].strip() if 0 < frame.line <= len(lines) else ""
            self._known[frame] = (_OUTER.sub("", frame.function), text)
        return self._known[frame]
