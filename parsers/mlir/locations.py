"""Where operations come from: the names that JAX gave them, and the stack of calls in the user's source.

    loc("jit(f)/add"(callsite("f"("a.py":12:3 to :9) at "<module>"("a.py":20:0 to :4))))

Source of the syntax: LLVM, mlir/lib/AsmParser/LocationParser.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..source import Frame


@dataclass(frozen=True, slots=True)
class UnknownLoc:
    """Nothing is known."""


@dataclass(frozen=True, slots=True)
class FileLoc:
    """A range in a file. Lines count from 1; the end is that of the start where only a start is given."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class NameLoc:
    """A name, and what it is the name of: an operation, an argument or, around a file, a function."""

    name: str
    child: Location | None = None


@dataclass(frozen=True, slots=True)
class CallSiteLoc:
    """A place in a function, and the places of the calls that led there, innermost first."""

    callee: Location
    callers: tuple[Location, ...]


@dataclass(frozen=True, slots=True)
class FusedLoc:
    """Several places at once; `metadata` is kept as text."""

    parts: tuple[Location, ...]
    metadata: str | None = None


Location = UnknownLoc | FileLoc | NameLoc | CallSiteLoc | FusedLoc


def names(location: Location) -> tuple[str, ...]:
    """The names that are not those of functions, outermost first: `jit(f)/add`, or the name of an argument."""
    return tuple(part for part in _parts(location, outermost=True) if isinstance(part, str))


def frames(location: Location) -> tuple[Frame, ...]:
    """The stack of calls in the user's source, innermost first."""
    return tuple(part for part in _parts(location, outermost=True) if isinstance(part, Frame))


def _parts(location: Location, outermost: bool) -> Iterator[str | Frame]:
    # A name right around a file is that of a function, unless nothing is around it: older JAX names operations so.
    match location:
        case NameLoc(name, FileLoc() as file) if not outermost:
            yield _frame(file, name)
        case NameLoc(name, child):
            yield name
            if child is not None:
                yield from _parts(child, outermost=False)
        case FileLoc():
            yield _frame(location, "")
        case CallSiteLoc(callee, callers):
            for part in (callee, *callers):
                yield from _parts(part, outermost=False)
        case FusedLoc(parts):
            for part in parts:
                yield from _parts(part, outermost)


def _frame(file: FileLoc, function: str) -> Frame:
    return Frame(file.file, function, file.line, file.end_line, file.column, file.end_column)
