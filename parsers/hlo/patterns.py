"""What the pieces of HLO text look like, as regular expressions.

Every one is possessive or bounded by a line, so that a search takes linear time on any text. Brackets are matched down
to a fixed depth, which covers what compilers print; `fields.bracket_end` reads deeper ones.
"""

from __future__ import annotations

from dataclasses import dataclass

DEPTH = 6
"""How deep brackets may be nested for these patterns."""

NAME = r"[A-Za-z_][\w.\-]*+"
SPACE = r"\s*+(?:(?:/\*(?:[^*]++|\*(?!/))*+\*/|//[^\n]*+)\s*+)*+"
"""What may stand between the parts of a text: blanks, line breaks, remarks."""


@dataclass(frozen=True, slots=True)
class Values:
    """Patterns for text with brackets in it, none of which takes in a character of `stop`."""

    stop: str = ""

    @property
    def string(self) -> str:
        """Text in quotes."""
        double, single = (
            rf"{quote}[^{quote}\\{self.stop}]*+(?:\\.[^{quote}\\{self.stop}]*+)*+{quote}" for quote in "\"'"
        )
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
        square = rf"\[(?:[^\]\"'{self.stop}]++|{self.string})*+\]"
        ids = rf",\s*+device_ids=\([^(){self.stop}]*+(?:\([^(){self.stop}]*+\))?+\)"
        on_mesh = rf"(?:(?:maximal_)?mesh|single_device){square}(?:{ids})?+\s*+(?=\{{)"
        return rf"(?:{self.braces}|{self.string}|{on_mesh}|[^\s,{{}}()\[\]\"']++|{square}|{self.parentheses})++"

    def _bracketed(self, opening: str, closing: str) -> str:
        plain = rf"[^{opening}{closing}\"'{self.stop}]++|{self.string}"
        pattern = rf"\{opening}(?:{plain})*+\{closing}"
        for _ in range(DEPTH):
            pattern = rf"\{opening}(?:{plain}|{pattern})*+\{closing}"
        return pattern


ANYWHERE = Values()
IN_LINE = Values(stop=r"\n")
