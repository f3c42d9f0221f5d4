"""A text that is on several lines, and in several places, as the one line that is read; and its places as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import ParseError
from ..source import Source, Span
from .patterns import STRING

_LAYOUT = re.compile(rf"({STRING})|(?://[^\n]*+|\s++)++")


def on_one_line(text: str) -> str:
    """The text without comments, line breaks and other white space that a printer would not write."""
    if "\n" not in text and "//" not in text:
        return text
    return _LAYOUT.sub(_blank, text).strip()


@dataclass(frozen=True)
class OneLine:
    """What stands at some places of a source, one behind the other, on one line."""

    source: Source
    places: Sequence[Span]

    @cached_property
    def text(self) -> str:
        """The line."""
        return on_one_line(self._written)

    def of_source(self, error: ParseError) -> ParseError:
        """The error, which is of the line, with its place in the source."""
        data, span = error.problem.source.data, error.problem.span
        start, end = (self._offset(len(data[:offset].decode("utf-8", "replace"))) for offset in (span.start, span.end))
        return ParseError(replace(error.problem, source=self.source, span=Span(start, max(start, end))))

    @cached_property
    def _written(self) -> str:
        return "".join(map(self.source.text, self.places))

    def _offset(self, character: int) -> int:
        """Where a character of the line is in the source."""
        if self.text is not self._written:
            character = self._as_written(character)
        for place in self.places[:-1]:
            length = len(self.source.text(place))
            if character < length:
                break
            character -= length
        else:
            place = self.places[-1]
        return place.start + len(self.source.text(place)[:character].encode("utf-8", "replace"))

    def _as_written(self, character: int) -> int:
        """Where a character of the line is in what is written."""
        blanks = [match.span() for match in _LAYOUT.finditer(self._written) if not match[1]]
        if blanks and blanks[0][0] == 0:
            character += 1
        for start, end in blanks:
            if start >= character:
                break
            character += end - start - 1
        return character


def _blank(match: re.Match[str]) -> str:
    return match[1] or " "
