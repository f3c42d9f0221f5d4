"""Templates of texts that are otherwise the same: the parts that differ are lifted out.

    stablehlo.add %2, %arg0 {sdy.sharding = …} : tensor<8xf32> loc(#loc7)     a text
    stablehlo.add %, % {} : tensor<8xf32> loc()                               its template
    %2   %arg0   {sdy.sharding = …}   loc(#loc7)                              what was lifted out

A module has tens of thousands of operations and a few hundred templates, and a grammar is run once for each of those.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from ..errors import ParseError, problem_in
from ..expressions import compiled
from ..record import Record
from .patterns import BRACES, STRING, TO_BRACKET, USE

# The alternatives begin with different characters, which lets the search skip all others.
_DENSE = rf'd(?<!\wd)ense(?:_resource)?+<(?:[^<>"]++|{STRING})*+>'
_LOCATION = rf"l(?<!\wl)oc\s*+\({TO_BRACKET}"


class Lifting(Record, frozen=True, eq=False):
    """The parts lifted out of texts of a kind, and their placeholders in the templates.

    What stands for a part is never left in a text by itself: it would have been lifted out too.
    """

    lifted: str
    placeholder: re.Pattern[str]


OPERATION = Lifting(rf"({STRING}|{USE}|{BRACES}|{_DENSE}|{_LOCATION})", re.compile(r'%|\{\}|""|\bdense<>|\bloc\(\)'))
"""An operation's text without names of values, attributes in braces, strings, literals and locations."""
FUNCTION = Lifting(rf"({STRING}|{BRACES}|(?:l(?<!\wl)oc\s*+)?+\({TO_BRACKET})", re.compile(r'\{\}|""|\bloc\(\)|\(…\)'))
"""A function's header without lists in parentheses, attributes in braces, strings and locations."""
LOCATION = Lifting(rf"({STRING}|[0-9№]++)", re.compile('""|№'))
"""A location without strings and numbers."""

_PLACEHOLDERS = {"%": "%", "{": "{}", '"': '""', "d": "dense<>", "l": "loc()", "(": "(…)"} | dict.fromkeys(
    "0123456789№", "№"
)
"""Placeholders of parts, by the character that the part begins with."""
_IN_WORDS = {
    "'%'": "a value",
    "'{}'": "attributes in braces",
    "'<{}>'": "properties",
    "'\"\"'": "a string",
    "'dense<>'": "a literal",
    "'loc()'": "a location",
    "'(…)'": "a list in parentheses",
    "'№'": "a number",
    "bang": "'!'",
    "hash": "'#'",
}
"""Expectations where a template does not fit, in words for readers who know nothing of templates."""


class Place(Record, frozen=True):
    """A part of a template: its characters from `start` up to, not including, `end`.

    Of what was lifted out of a text, `count` parts from number `first` on belong there; `text` is without them.
    """

    start: int
    end: int
    text: str = ""
    first: int = 0
    count: int = 0
    is_part: bool = False
    """True if the place is one part and nothing else."""


class Filled(Record, frozen=True):
    """A template, and what was lifted out of one text, in text order."""

    template: str
    parts: Sequence[str]
    lifting: Lifting

    def text(self, place: Place) -> str:
        """Return the text for a place of the template."""
        if place.count == 0:
            return place.text
        if place.is_part:
            return self.parts[place.first]
        parts = iter(self.parts[place.first :])
        return self.lifting.placeholder.sub(lambda _: next(parts), place.text)

    def of_text(self, error: ParseError) -> ParseError:
        """The error, which is of the template, with its place in the text."""
        problem = error.problem
        template = problem.source.data
        ends = [len(template[:offset].decode("utf-8", "replace")) for offset in (problem.span.start, problem.span.end)]
        before, inside = (len(self._between(*piece)) for piece in ((0, ends[0]), ends))
        expected = tuple(_IN_WORDS.get(each, each) for each in problem.expected)
        text = self._between(0, len(self.template))
        return ParseError(problem_in(text, problem.message, before, before + inside, expected))

    def _between(self, start: int, end: int) -> str:
        return self.text(located(self.template, self.lifting, start, end))


def completed(value: Any, template: str, lifting: Lifting) -> Any:
    """A form of frozen values, in which a grammar has put places, with all that is known of the places."""
    match value:
        case Place(start, end):
            return located(template, lifting, start, end)
        case tuple():
            return tuple(completed(each, template, lifting) for each in value)
    if not isinstance(value, Record):
        return value
    return type(value)(*(completed(getattr(value, name), template, lifting) for name in value.__struct_fields__))


def lift(lifting: Lifting, text: str) -> Filled:
    """A text's template, and what was lifted out."""
    pieces = compiled(lifting.lifted).split(text)
    parts = pieces[1::2]
    pieces[1::2] = [_PLACEHOLDERS[part[0]] for part in parts]
    return Filled("".join(pieces), parts, lifting)


@lru_cache(maxsize=16384)
def placeholders(template: str, lifting: Lifting) -> tuple[Place, ...]:
    """Return the places of a template at which something was lifted out."""
    found = enumerate(lifting.placeholder.finditer(template))
    return tuple(Place(*match.span(), match[0], number, 1, is_part=True) for number, match in found)


def located(template: str, lifting: Lifting, start: int, end: int) -> Place:
    """A part of a template, with what belongs there."""
    found = placeholders(template, lifting)
    first, behind = (bisect_left(found, offset, key=attrgetter("start")) for offset in (start, end))
    only = found[first:behind]
    if len(only) == 1 and (only[0].start, only[0].end) == (start, end):
        return only[0]
    return Place(start, end, template[start:end], first, len(only))
