"""Origins of operations: JAX's names, and the stack of calls in the user's source.

    loc("jit(f)/add"(callsite("f"("a.py":12:3 to :9) at "<module>"("a.py":20:0 to :4))))

Source of the syntax: LLVM, mlir/lib/AsmParser/LocationParser.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from ..errors import ParseError
from ..grammar import Grammar, several
from ..lalr import Token
from ..record import Record
from ..source import Frame
from .lists import nesting, unquote
from .template import LOCATION, Filled, Place, completed, lift


class UnknownLoc(Record, frozen=True):
    """Nothing is known."""


class FileLoc(Record, frozen=True):
    """A range in a file. Lines count from 1; the end is that of the start where only a start is given."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class NameLoc(Record, frozen=True):
    """A name, and what it is the name of: an operation, an argument or, around a file, a function."""

    name: str
    child: Location | None = None


class CallSiteLoc(Record, frozen=True):
    """A place in a function, and the places of the calls that led there, innermost first."""

    callee: Location
    callers: tuple[Location, ...]


class FusedLoc(Record, frozen=True):
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


MAX_CALLERS = 100
"""Maximum length of a stack of calls; of a longer one the innermost part is kept."""
MAX_DIGITS = 18
MAX_DEPTH = 100
MAX_PARTS = 1000
"""Limit of nesting and of named parts, above any compiler's: beyond it a location counts as unknown."""


class _Name(Record, frozen=True):
    name: Place
    child: _Form | None = None


class _File(Record, frozen=True):
    file: Place
    line: Place
    column: Place
    to: Place | None
    end_line: Place | None
    end_column: Place | None


class _CallSite(Record, frozen=True):
    callee: _Form
    caller: _Form


class _Fused(Record, frozen=True):
    metadata: Place | None
    parts: tuple[_Form, ...]


class _Alias(Record, frozen=True):
    name: Place


_Form = _Name | _File | _CallSite | _Fused | _Alias | UnknownLoc
"""A location as a template spells it, with places of the template instead of texts and numbers."""


def _places(location: Location) -> tuple[Location, ...]:
    """The locations that one stands for in a fused one."""
    return location.parts if isinstance(location, FusedLoc) and location.metadata is None else (location,)


class Locations:
    """The locations of a text, each resolved when it is first asked for.

    `definition` gives the text that an alias, `#loc7`, stands for, or None if nothing defines it.
    """

    def __init__(self, definition: Callable[[str], str | None]) -> None:
        self._definition = definition
        self._defined: dict[str, tuple[_Form, Filled] | None] = {}
        self._resolved: dict[str, Location] = {}

    def resolve(self, text: str) -> Location:
        """The location that `loc(…)` spells, with aliases replaced; raises ParseError.

        An alias that nothing defines, or that is defined by itself, is unknown.
        """
        if text not in self._resolved:
            self._resolved[text] = _Resolution(self.defined).location(*_read(text))
        return self._resolved[text]

    def defined(self, alias: str) -> tuple[_Form, Filled] | None:
        """Return the meaning of an alias, which is read once: frames are in the stacks of many operations."""
        if alias not in self._defined:
            definition = self._definition(alias)
            self._defined[alias] = None if definition is None else _read(definition)
        return self._defined[alias]


class _Resolution:
    """The replacing of aliases in one location, as long as they are not too many."""

    def __init__(self, defined: Callable[[str], tuple[_Form, Filled] | None]) -> None:
        self._defined = defined
        self._parts_left = MAX_PARTS

    def location(self, form: _Form, text: Filled, depth: int = 0) -> Location:
        """The location that has this form in a text."""
        form, text = self._replaced(form, text)
        if depth > MAX_DEPTH:
            return UnknownLoc()
        match form:
            case _Name(name, child):
                inner = None if child is None else self.location(child, text, depth + 1)
                return NameLoc(unquote(text.text(name)), inner)
            case _File(file, line, column, _, end_line, end_column):
                numbers = (line, column, end_line or line, end_column or column)
                return FileLoc(unquote(text.text(file)), *(int(text.text(place)[:MAX_DIGITS]) for place in numbers))
            case _CallSite(callee, caller):
                return CallSiteLoc(self.location(callee, text, depth + 1), self._callers(caller, text, depth + 1))
            case _Fused(metadata, parts):
                fused = tuple(self.location(part, text, depth + 1) for part in parts)
                if any(isinstance(each, FusedLoc) for each in fused):  # to MLIR they are one, of distinct places
                    fused = tuple(dict.fromkeys(one for each in fused for one in _places(each)))
                return FusedLoc(fused, None if metadata is None else text.text(metadata)[1:-1])
        return UnknownLoc()

    def _callers(self, form: _Form, text: Filled, depth: int) -> tuple[Location, ...]:
        callers: list[Location] = []
        while len(callers) < MAX_CALLERS:
            form, text = self._replaced(form, text)
            if not isinstance(form, _CallSite):
                return (*callers, self.location(form, text, depth))
            callers.append(self.location(form.callee, text, depth))
            form = form.caller
        return tuple(callers)

    def _replaced(self, form: _Form, text: Filled) -> tuple[_Form, Filled]:
        """Return the text of an alias, or of an alias of an alias."""
        while isinstance(form, _Alias):
            self._parts_left -= 1
            defined = self._defined(text.text(form.name))
            if defined is None or self._parts_left < 0:
                return UnknownLoc(), text
            form, text = defined
        return form, text


@lru_cache(maxsize=8192)
def _read(text: str) -> tuple[_Form, Filled]:
    filled = lift(LOCATION, text)
    if text.count("(") > MAX_DEPTH and nesting(text) > MAX_DEPTH:
        return UnknownLoc(), filled
    try:
        return _form(filled.template), filled
    except ParseError as error:
        raise filled.of_text(error) from None


@lru_cache(maxsize=4096)
def _form(template: str) -> _Form:
    form: _Form = completed(_GRAMMAR.parse(template), template, LOCATION)
    return form


def _place(token: Token) -> Place:
    return Place(token.start, token.end)


_GRAMMAR = Grammar(
    "mlir_locations",
    {
        "start": lambda location: location,
        "alias": _Alias,
        "name": _Name,
        "file": _File,
        "callsite": _CallSite,
        "fused": lambda metadata, *parts: _Fused(metadata, several(*parts)),
        "unknown": UnknownLoc,
        "TO": _place,
        "ALIAS": _place,
        "STRING": _place,
        "INT": _place,
        "METADATA": _place,
    },
    placed=True,
)
