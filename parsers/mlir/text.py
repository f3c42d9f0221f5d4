"""Parts of a text that are read once, on first use: outline, aliases, meshes and the trees of regions."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from ..errors import ParseError, Problem
from ..expressions import compiled
from ..grammar import anchored
from ..sharding_syntax.mesh import MeshSyntax
from ..source import Source, Span
from .lists import entries, symbol
from .locations import Location, Locations
from .patterns import ALIAS_NAME, REST, for_bytes
from .scan import find_functions, span_at, starts
from .sdy_parser import parse_mesh
from .statement import on_one_line, read_head, read_statement
from .structure import Nest, RegionNode, structure
from .types import MlirType, parse_type

T = TypeVar("T")

MAX_RESOLVED = 1 << 20
"""An attribute in which aliases stand for more characters than this is left as it is."""

_ALIAS = compiled(r"[#!][A-Za-z_]\w*+(?![\w.<$\-])")
_DEFINITION = rf"[ \t]*+({ALIAS_NAME})\s*+=(?!=)[ \t]*+"
_FIRST = compiled(_DEFINITION.encode())
_OTHERS = compiled(rf"\n{_DEFINITION}".encode())


class Aliases:
    """The aliases of a text, `#loc7 = loc("a")`, `!t = tensor<8xf32>`, each defined at the start of a line.

    The text is searched when the first one is asked for.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def definition(self, name: str) -> str | None:
        """Return the text that an alias, `#loc7`, stands for; None if it is not defined."""
        start = self._starts.get(name.encode())
        if start is None:
            return None
        rest = for_bytes(REST).match(self._source.data, start)
        assert rest is not None
        return on_one_line(self._source.text(Span(start, rest.end())))

    @cached_property
    def _starts(self) -> dict[bytes, int]:
        data = self._source.data
        first = _FIRST.match(data)
        found = {match[1]: match.end() for match in _OTHERS.finditer(data)}
        return found | {first[1]: first.end()} if first else found


class MlirText:
    """A text and what has been found in it so far; `aliases` are those of another text, if it is written with them."""

    def __init__(self, source: Source, aliases: Aliases | None = None) -> None:
        self.source = source
        self.functions = find_functions(source.data)
        """The functions of a text that is indented as printers do; None for other texts."""
        self.aliases = aliases or Aliases(source)
        self._locations = Locations(self.aliases.definition)
        self._parents: dict[int, Nest | None] = {}
        self._regions: dict[Span, tuple[RegionNode, tuple[Problem, ...]]] = {}

    def region(self, node: RegionNode | Span) -> RegionNode:
        """The tree of a region, structured now if that was left for later."""
        return node if isinstance(node, RegionNode) else self.structured(node)[0]

    def structured(self, span: Span) -> tuple[RegionNode, tuple[Problem, ...]]:
        """The tree of a region that was left for later, and what in it does not fit."""
        if span not in self._regions:
            self._regions[span] = structure(self.source, span)
        return self._regions[span]

    def parent(self, start: int) -> Nest | None:
        """The innermost operation with regions around the operation that starts there."""
        if start not in self._parents:
            around = nests_around(self, start)
            starts = [*(nest.span.start for nest in around), start]
            self._parents |= zip(starts, (None, *around), strict=True)
        return self._parents[start]

    @cached_property
    def outline(self) -> tuple[RegionNode, tuple[Problem, ...]]:
        """The tree of the whole text, in which the functions that were found are left for later."""
        bodies = [function.body for function in self.functions or () if function.body]
        return structure(self.source, Span(0, len(self.source.data)), bodies)

    def type(self, text: str, start: int) -> MlirType:
        """The type that a text spells, be it an alias, which comes first from `start` on; raises ParseError."""
        return self.read(text, parse_type, start)

    def resolved(self, text: str) -> str:
        """The text of an attribute or a type, with aliases replaced by what they stand for."""
        used = Counter(_ALIAS.findall(text))
        if not used:
            return text
        names = {name: self.aliases.definition(name) or name for name in used}
        size = sum(count * len(names[name]) for name, count in used.items())
        return text if size > MAX_RESOLVED else _ALIAS.sub(lambda name: names[name[0]], text)

    def read(self, value: str, parse: Callable[[str], T], start: int) -> T:
        """Return the meaning of an attribute's value or alias; raises ParseError.

        The error's place is the first one from `start` on where the text has what could not be read.
        """
        try:
            return parse(self.resolved(value))
        except ParseError as error:
            raise self.placed(error, start) from None
        except ValueError as error:
            place = max(self.source.data.find(value.encode(), start), start)
            raise ParseError(Problem(str(error), self.source, Span(place, place + len(value.encode())))) from None

    def placed(self, error: ParseError, start: int) -> ParseError:
        """The error, which is of a piece of the text, with its place: where from `start` on the piece comes first.

        A piece that is on several lines is not found, since it is read as if it were on one: its place is `start`.
        """
        if error.problem.source is self.source:
            return error
        place = self.source.data.find(error.problem.source.data, start)
        if place < 0:
            return ParseError(replace(error.problem, source=self.source, span=Span(start, start)))
        return anchored(error, self.source, place)

    @cached_property
    def meshes(self) -> tuple[Mapping[str, MeshSyntax], tuple[Problem, ...]]:
        """The meshes by name, without the `@`, and why others could not be read."""
        found = {}
        problems = []
        for start in starts(self.source.data, ("sdy.mesh",)):
            span = span_at(self.source.data, start) or Span(start, start)
            try:
                attributes = read_statement(self.source, read_head(self.source, start), (span,)).attributes
                name = symbol(attributes.get("sym_name", ""))
                found[name] = self.read(attributes.get("mesh", ""), parse_mesh, start)
            except ParseError as error:
                problems.append(self.placed(error, start).problem)
        return MappingProxyType(found), tuple(problems)

    def location(self, text: str | None) -> Location:
        """The location that `loc(…)` spells."""
        try:
            return self._locations.resolve("loc(unknown)" if text is None else text)
        except ParseError as error:
            raise self.placed(error, 0) from None

    def entries(self, text: str, start: int) -> Mapping[str, str]:
        """The entries of a dictionary, which comes first from `start` on; raises ParseError."""
        try:
            return entries(text)
        except ParseError as error:
            raise self.placed(error, start) from None


def nests_around(text: MlirText, offset: int) -> list[Nest]:
    """The operations with regions around an offset, outermost first; one that starts there is not around it."""
    return [nest for nest in nests_holding(text, offset) if nest.span.start < offset]


def nests_holding(text: MlirText, offset: int) -> list[Nest]:
    """The operations with regions whose text holds the byte at an offset, outermost first."""
    around = []
    regions: tuple[RegionNode | Span, ...] = (text.outline[0],)
    while regions:
        begun = (block.items for region in regions for block in text.region(region).blocks)
        items = next((each for each in reversed([*begun]) if each and each[0].span.start <= offset), ())
        place = bisect_right(items, offset, key=lambda item: item.span.start) - 1
        item = items[place] if place >= 0 else None
        regions = ()
        if isinstance(item, Nest) and offset < item.span.end:
            around.append(item)
            regions = _region_at(item, offset)
    return around


def _region_at(nest: Nest, offset: int) -> tuple[RegionNode | Span, ...]:
    place = bisect_right(nest.pieces, offset, key=lambda piece: piece.start) - 1
    return nest.regions[place : place + 1] if len(nest.pieces) == len(nest.regions) + 1 else nest.regions


def nests_in(text: MlirText) -> Iterator[Nest]:
    """All operations with regions, each before those in it."""
    waiting: list[RegionNode | Span] = [text.outline[0]]
    while waiting:
        for block in text.region(waiting.pop()).blocks:
            for item in block.items:
                if isinstance(item, Nest):
                    yield item
                    waiting += item.regions
