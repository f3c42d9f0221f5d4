"""Regular expressions that take long to compile: what Python makes of them is kept beside its bytecode.

To compile those of the parsers takes longer than to read a small program with them. Touches the functions with which
`re.compile` does so (Python 3.11 to 3.14); the interpreter checks the code that it is given.
"""

from __future__ import annotations

import atexit
import marshal
import os
import re
import sys
from contextlib import suppress
from functools import cache
from typing import Any, AnyStr

_FILE = f"{getattr(__spec__, 'cached', None)}.{sys.hexversion:x}"

_Parts = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]

_added: dict[tuple[Any, int], _Parts] = {}


@cache
def compiled(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns."""
    key = pattern, int(flags)
    try:
        import _sre  # type: ignore[import-not-found]

        parts = _kept().get(key)
        if parts is None:
            if not _added:
                atexit.register(_keep)
            parts = _added[key] = _parts_of(*key)
        flags, code, *groups = parts
        found: re.Pattern[AnyStr] = _sre.compile(pattern, flags, memoryview(code).cast("I").tolist(), *groups)
        return found
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return re.compile(pattern, flags)


def _parts_of(pattern: Any, flags: int) -> _Parts:
    """The arguments of `_sre.compile` behind the pattern, as `re._compiler.compile` finds them."""
    from array import array
    from re import _compiler, _parser  # type: ignore[attr-defined]

    parsed = _parser.parse(pattern, flags)
    code = array("I", _compiler._code(parsed, flags)).tobytes()
    numbers = dict(parsed.state.groupdict)
    names: dict[int, str] = {number: name for name, number in numbers.items()}
    groups = parsed.state.groups
    return flags | parsed.state.flags, code, groups - 1, numbers, tuple(map(names.get, range(groups)))


@cache
def _kept() -> dict[tuple[Any, int], _Parts]:
    try:
        with open(_FILE, "rb") as file:
            found = marshal.load(file)
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _keep() -> None:
    if sys.dont_write_bytecode:
        return
    beside = f"{_FILE}.{os.getpid()}"
    with suppress(OSError):  # as with bytecode, the folder may be somebody else's
        with open(beside, "wb") as file:
            marshal.dump(_kept() | _added, file)
        os.replace(beside, _FILE)
