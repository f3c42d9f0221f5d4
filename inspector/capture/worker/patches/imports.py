"""Changes to what the script imports: to modules of JAX, which it is to import first, and to files of its own."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


def change_after_import(changes: dict[str, Callable[[ModuleType], None]]) -> None:
    """Have each of these modules changed by a function right after it has been executed."""
    sys.meta_path.insert(0, _Finder(changes))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as they are found anyway, and changes some right after they have been executed."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self._changes.pop(fullname, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_change(module: ModuleType) -> None:
                execute(module)
                change(module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


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
