"""Texts that stand in for files of the user's, so that a change can be tried without touching anything on disk."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

_TEXTS: dict[str, bytes] = {}
"""By the real path of the file."""


def interpose(replaced: Iterable[Iterable[str]]) -> None:
    """From now on import these files as if they held what others do: pairs of a file and of one with its text."""
    for file, text in replaced:
        path = os.path.realpath(file)
        _TEXTS[path] = Path(text).read_bytes()
    if _TEXTS:
        SourceFileLoader.get_code = _get_code  # type: ignore[method-assign, assignment]


def text_of(file: str | Path) -> bytes:
    """What a file holds, or what stands in for that."""
    text = _TEXTS.get(os.path.realpath(file)) if _TEXTS else None
    return Path(file).read_bytes() if text is None else text


_original = SourceFileLoader.get_code


def _get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
    path = self.get_filename(fullname)
    text = _TEXTS.get(os.path.realpath(path))
    if text is None:
        return _original(self, fullname)
    # Tracebacks quote lines from here instead of from the file.
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[path] = (len(text), None, lines, path)
    code: CodeType = self.source_to_code(text, path)
    return code
