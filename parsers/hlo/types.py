"""The types of HLO instructions: `f32[8,16]{1,0:T(8,128)}` and tuples of such.

Source of the notions: XLA, xla/shape.h and xla/layout.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from ..errors import ParseError, problem_in
from ..expressions import compiled
from ..grammar import Grammar, integers, several
from ..record import Record
from .fields import as_printed, number

UNBOUNDED = -1
"""The size of a dimension that is printed as `?`."""

MAX_NESTING = 100
"""Types nested deeper than this are kept as text: code that walks a type may recurse."""


class ArrayShape(Record, frozen=True):
    """An array of `dtype` (XLA's name: `f32`, `bf16`, `pred`, `token`, …) with sizes in elements, major to minor.

    `dynamic` says for each dimension whether its size is only a bound; it is empty when none is. The layout is kept as
    printed, `parse_layout` reads it.
    """

    dtype: str
    dims: tuple[int, ...]
    layout: str | None = None
    dynamic: tuple[bool, ...] = ()

    def __str__(self) -> str:
        bounds = self.dynamic or (False,) * len(self.dims)
        sizes = (
            "?" if size == UNBOUNDED else f"<={size}" if d else str(size)
            for size, d in zip(self.dims, bounds, strict=True)
        )
        return f"{self.dtype}[{','.join(sizes)}]{self.layout or ''}"


class TupleShape(Record, frozen=True):
    """Several values at once."""

    elements: tuple[HloType, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


class BufferShape(Record, frozen=True):
    """A reference to memory that holds an array."""

    array: ArrayShape

    def __str__(self) -> str:
        return f"b({self.array})"


class OtherType(Record, frozen=True):
    """A type that this version cannot read, as it is in the text."""

    text: str

    def __str__(self) -> str:
        return self.text


HloType = ArrayShape | TupleShape | BufferShape | OtherType


class Layout(Record, frozen=True):
    """The layout of an array in memory: its dimensions from minor to major, and the properties after the colon.

    `properties` holds the printed letters with the texts of their parentheses, in order: `T` tiles, `E` element size in
    bits, `S` memory space, `L` tail padding, `SC` split configuration, `D` dimension level types, `P` physical shape,
    `M` dynamic shape metadata, `#` and `*` index and pointer types.
    """

    minor_to_major: tuple[int, ...]
    properties: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def memory_space(self) -> int:
        """The number of the memory space, 0 for the default one."""
        numbers = [arguments[0] for letters, arguments in self.properties if letters == "S"]
        return number(numbers[0]) or 0 if numbers else 0


@lru_cache(maxsize=65536)
def parse_type(text: str) -> HloType:
    """The type that a text spells; one that cannot be read comes back as OtherType."""
    try:
        return read_type(as_printed(text))
    except ParseError:
        return OtherType(text)


def read_type(text: str) -> HloType:
    """The type that a text spells; raises ParseError."""
    if text.count("(") > MAX_NESTING and _nesting(text) > MAX_NESTING:
        raise ParseError(problem_in(text, f"a type nested more than {MAX_NESTING} deep"))
    parsed: HloType = _TYPES.parse(text, "type")
    return parsed


_ARRAY_PARTS = compiled(r"(\w+)(\[[^\]]*\])(.*)", re.DOTALL)


def element_type(type: HloType, path: Iterable[int]) -> HloType | None:
    """The type of an element of a tuple, of an element of that, …; None where there is no such element."""
    for index in path:
        if not isinstance(type, TupleShape) or index >= len(type.elements):
            return None
        type = type.elements[index]
    return type


def _array(dtype: str, dims: str, layout: str | None) -> ArrayShape:
    sizes = tuple(dims[1:-1].split(",")) if dims[1:-1].strip() else ()
    bounded = tuple("<" in size or "?" in size for size in sizes)
    return ArrayShape(dtype, tuple(map(_size, sizes)), layout or None, bounded if any(bounded) else ())


@lru_cache(maxsize=65536)
def _array_of(text: str) -> ArrayShape:
    return _array(*_ARRAY_PARTS.findall(text)[0])


def _size(text: str) -> int:
    bound = text.strip().removeprefix("<=")
    return UNBOUNDED if bound == "?" else int(bound)


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(depth, deepest)
    return deepest


_TYPES = Grammar(
    "hlo_types",
    {
        "spaced_array": _array,
        "tuple": lambda *elements: TupleShape(several(*elements)),
        "buffer": BufferShape,
        "ARRAY": _array_of,
    },
)
_LAYOUTS = Grammar(
    "hlo_layout",
    {
        "layout": lambda order, *properties: Layout(order or (), properties),
        "property": lambda letters, *arguments: (letters, arguments),
        "INTS": integers,
        "ARGUMENT": lambda text: text[1:-1],
    },
)

parse_layout: Callable[[str], Layout] = _LAYOUTS.reader("layout")
"""The layout that a text in braces spells; raises ParseError."""


def leaves(type: HloType) -> Iterator[HloType]:
    """The types that are not tuples, in order."""
    pending = [type]
    while pending:
        match pending.pop():
            case TupleShape(elements):
                pending += reversed(elements)
            case leaf:
                yield leaf
