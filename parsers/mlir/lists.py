"""Lists, dictionaries and strings in attributes, one level deep.

Where an item ends, the patterns tell; what it means, the grammar of its own language does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType

from ..errors import ParseError, problem_in
from ..expressions import compiled
from .patterns import ITEM, STRING

UNIT = "unit"
"""The value of an attribute that says something by being there."""

_ENTRY = compiled(rf"\s*+({STRING}|[\w$.\-]++)\s*+(?:=\s*+(.+))?+", re.DOTALL)
_BRACKET = compiled(r"(?<!-)>|[(\[{<)\]}]")
_ESCAPE = compiled(rb'\\(?:([0-9A-Fa-f]{2})|(["\\nt]))')
_LETTERS = {b"n": b"\n", b"t": b"\t"}


def items(text: str) -> tuple[str, ...]:
    """The items of a list, which is given with its brackets; raises ParseError."""
    inside = text[1:-1]
    found = compiled(ITEM).findall(inside)
    if ",".join(found) != inside and inside.strip():
        right = takewhile(lambda pair: pair[0] == pair[1], zip(",".join(found), inside, strict=False))
        raise ParseError(problem_in(text, "not an item of a list", 1 + len(list(right))))
    return tuple(map(str.strip, found)) if inside.strip() else ()


@lru_cache(maxsize=8192)
def entries(text: str) -> Mapping[str, str]:
    """The entries of a dictionary, which is given with its braces, values as text; raises ParseError."""
    found = {}
    for item in items(text):
        entry = _ENTRY.fullmatch(item)
        if entry is None:
            start, expected = max(text.find(item), 0), ("key = value",)
            raise ParseError(problem_in(text, "not an entry of a dictionary", start, expected=expected))
        key, value = entry.groups()
        found[unquote(key) if key[0] == '"' else key] = UNIT if value is None else value
    return MappingProxyType(found)


def nesting(text: str) -> int:
    """Return the maximum nesting depth of brackets; those in strings count too."""
    deepest = depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "([{<" else -1
        deepest = max(deepest, depth)
    return deepest


def unquote(text: str) -> str:
    r"""The string that a quoted text stands for. Behind a backslash are two hexadecimal digits: `\22` is a quote.

    Source: LLVM, mlir/lib/AsmParser/Token.cpp, Token::getStringValue.
    """
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(_character, inner.encode("utf-8", "replace")).decode("utf-8", "replace")


def quote(text: str) -> str:
    """The text in quotes, as MLIR prints it.

    Source: LLVM, llvm/lib/Support/StringExtras.cpp, printEscapedString.
    """
    return f'"{"".join(map(_printed, text.encode("utf-8", "replace")))}"'


def symbol(text: str) -> str:
    """The name that `@name`, `@"name"` or `"name"` stands for."""
    name = text.removeprefix("@")
    return unquote(name) if name.startswith('"') else name


def _printed(byte: int) -> str:
    if byte == ord("\\"):
        return "\\\\"
    return chr(byte) if 0x20 <= byte < 0x7F and byte != ord('"') else f"\\{byte:02X}"


def _character(match: re.Match[bytes]) -> bytes:
    digits, letter = match.groups()
    return bytes.fromhex(digits.decode()) if digits else _LETTERS.get(letter, letter)
