"""Regular expressions for the parts of HLO text.

Every one is possessive or bounded by a line, so that a search takes linear time on any text. Brackets are matched down
to a fixed depth, which covers what compilers print; `fields.bracket_end` reads deeper ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from string import whitespace

from ..record import Record

DEPTH = 6
"""Maximum nesting of brackets in these patterns."""

NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+"
QUOTES = "\"'"
REMARK = r"(?:/\*(?:[^*]++|\*(?!/))*+\*/|//[^\n]*+)"
SPACE = rf"\s*+(?:{REMARK}\s*+)*+"
"""Separators of the parts of a text: blanks, line breaks, remarks."""


class Values(Record, frozen=True):
    """Patterns for text with brackets in it, none of which takes in a character of `stop`; for bytes, or for str.

    Of remarks they take in only those that XLA prints, `/*index=5*/`.
    """

    stop: str = ""
    of_bytes: bool = True

    @property
    def string(self) -> str:
        """Text in quotes."""
        double, single = (rf"{quote}{plain}*+(?:\\.{plain}*+)*+{quote}" for quote, plain in self._in_quotes)
        return f"(?:{double}|{single})"

    @property
    def braces(self) -> str:
        """Text in braces; braces in strings do not count."""
        return self._bracketed("{", "}")

    @property
    def parentheses(self) -> str:
        """Text in parentheses; parentheses in strings do not count."""
        return self._bracketed("(", ")")

    @property
    def value(self) -> str:
        """The value of an attribute; `mesh['x'=2], device_ids=(1,0) {'x'}` is a single one."""
        square = rf"\[(?:{self.but(QUOTES + ']/')}++|{self.string}|/(?![*/]))*+\]"
        flat = self.but("()/")
        ids = rf",\s*+device_ids=\({flat}*+(?:\({flat}*+\))?+\)"
        on_mesh = rf"(?:(?:maximal_)?mesh|single_device){square}(?:{ids})?+\s*+(?=\{{)"
        plain = self.but(whitespace + QUOTES + ",{}()[]/")
        return rf"(?:{self.braces}|{self.string}|{on_mesh}|{plain}++|{square}|{self.parentheses}|/(?![*/]))++"

    @property
    def _in_quotes(self) -> Iterator[tuple[str, str]]:
        return ((quote, self.but(quote + "\\")) for quote in QUOTES)

    def _bracketed(self, opening: str, closing: str) -> str:
        plain = rf"{self.but(opening + closing + QUOTES + '/')}++|{self.string}|/(?:\*index=[0-9]++\*/|(?![*/]))"
        pattern = rf"\{opening}(?:{plain})*+\{closing}"
        for _ in range(DEPTH):
            pattern = rf"\{opening}(?:{plain}|{pattern})*+\{closing}"
        return pattern

    def but(self, characters: str) -> str:
        """The set of all but some characters, and those of `stop`."""
        if not self.of_bytes:
            return f"[^{re.escape(characters + self.stop)}]"
        # Python searches a set that lists what is in it three times as fast as one that lists what is not.
        edges = [-1, *sorted(map(ord, {*characters, *self.stop})), 256]
        runs = ((before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1)
        listed = (rf"\x{first:02x}-\x{last:02x}" for first, last in runs)
        return f"[{''.join(listed)}]"


def _type() -> str:
    array = r"[a-z][a-z0-9]*+\[[0-9,<=?]*+\](?:\{[^{}\n/]*+\})?+"
    found = array
    for _ in range(3):
        found = rf"(?:{array}|\((?:{found}(?:, (?:/\*index=[0-9]++\*/)?+)?+)*+\))"
    return found


TYPE = _type()
"""A type as it is printed."""

OPERANDS = rf"(?:(?:/\*index=[0-9]++\*/)?+(?:{TYPE} )?+%?{NAME}(?:#[0-9]{{1,9}})*+(?:, (?=[^)])|(?=\)|\Z)))*+"
"""Operands as they are printed, up to the parenthesis behind them."""

ANYWHERE = Values()
IN_LINE = Values(stop="\n")
IN_TEXT = Values(of_bytes=False)
"""`ANYWHERE`, which matches bytes, for decoded text."""
