"""Aliases: `#loc7 = loc("a")`, `#mesh = #sdy.mesh<…>`, `!t = tensor<8xf32>`, each defined at the start of a line."""

from __future__ import annotations

import re
from functools import cached_property

from ..source import Source, Span
from .one_line import on_one_line
from .patterns import ALIAS_NAME, REST, for_bytes

_DEFINITION = rf"[ \t]*+({ALIAS_NAME})\s*+=(?!=)[ \t]*+"
_FIRST = re.compile(_DEFINITION.encode())
_OTHERS = re.compile(rf"\n{_DEFINITION}".encode())


class Aliases:
    """Where the aliases of a text are defined. The text is searched when the first one is asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def definition(self, name: str) -> str | None:
        """What an alias, `#loc7`, stands for, as text; None if nothing defines it."""
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
