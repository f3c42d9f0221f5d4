"""MLIR text in the layout of its printer: one operation a line, and blanks only where the printer writes them.

MLIR's lexer takes blanks, line breaks and comments between any two tokens. All other modules here rely on lines and on
the printer's blanks, so a text in another layout is laid out anew before it is read. Operations keep their lines as
long as each starts on one of its own: lines that are saved inside of an operation are added behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..source import Source
from .module import MlirModule
from .patterns import STRING, WORD

_TOKEN = re.compile(
    rf"(?P<gap>(?:\s++|//[^\n]*+)++)|(?P<resources>\{{-#.*+)|@{STRING}|{STRING}|[%@!#^][{WORD}\-]++"
    rf"|-?[0-9]x?[{WORD}]*+(?:(?<=[eE])[+\-][0-9]++)?|[A-Za-z_][{WORD}]*+|->|::|.",
    re.DOTALL,
)
_UNUSUAL = (
    b"\t",
    b"\r",
    b"//",
    b" ,",
    b" )",
    b" ]",
    b" >",
    b"( ",
    b"[ ",
    b"< ",
    b"{ ",
    b" <=",
    b"tensor <",
    b"loc (",
    b" \n",
    b"(\n",
    b",\n",
    b"=\n",
    b"<\n",
    b"[\n",
)
"""Spellings outside of strings that no printer writes."""
_UNUSUAL_PARTS = tuple(
    re.compile(pattern.encode())
    for pattern in (
        r"\n[ \n]*+(?!%|\}|\^|[#!][^\n ]++ = |\{-#|\Z|"
        + rf'"[{WORD}\-]++"\(|[a-z_]++\.[a-z]|return\b|call\b|module\b|reducer\(|cond )',
        r"\n(?:(?:  )*+ (?=[^ \n])(?!reducer)| {3,}+func\.func)",
        rf"(?<=[^\n ,(]) %[{WORD}\-]++(?::[0-9]++)?+ =",
        rf"[)\]}}>] *+[#!][{WORD}]++ =",
        r"[)\]}>]%",
        r"[)\]}>] ++(?:[a-z_]++\.[a-z]|return\b|call\b)",
        rf"%[{WORD}\-]++ ++(?:#|:[0-9])",
        r"(?<=[^\n ])(?: {2}(?!\{\n)| \})",
        rf"#[{WORD}]++ <",
    )
)
_ALONE = frozenset({"return", "call", "call_indirect", "module"})
_BEHIND = frozenset({"=", ",", ")", "]", ">"})
"""Tokens behind the key of an attribute, not behind the name of an operation."""
_NAMED_IN = frozenset({"=", "applies", ","})
"""Tokens before the name of an operation that does not start there."""
_CLOSING = frozenset(")]>,")
_CALLED = frozenset({"loc", "callsite", "fused", "at"})


class _Token(NamedTuple):
    text: str
    blank: bool
    """True if anything was between the token and the one before."""
    lines: int
    """The line breaks there."""


def in_printers_layout(source: Source) -> Source:
    """The text in the layout of the printer; as it is if it has that already, or cannot be read in that either."""
    if not is_unusual(source.data):
        return source
    laid_out = Source(source.name, as_printed(source.data))
    return source if MlirModule(laid_out).problems else laid_out


def is_unusual(data: bytes) -> bool:
    """Return whether a text may be in another layout than the printer's; strings are taken for text."""
    return any(part in data for part in _UNUSUAL) or any(part.search(data) for part in _UNUSUAL_PARTS)


def as_printed(data: bytes) -> bytes:
    """The text, laid out as the printer does it."""
    tokens, rest = _tokens(data.decode("latin-1"))
    return (_laid_out(tokens) + rest).encode("latin-1")


def _tokens(text: str) -> tuple[list[_Token], str]:
    """The tokens of a text up to its resources, and these as they are."""
    found: list[_Token] = []
    blank, lines = False, 0
    for match in _TOKEN.finditer(text):
        if match["gap"]:
            blank, lines = True, match[0].count("\n")
        elif match["resources"]:
            return found, "\n" * max(lines, 1) + match[0]
        else:
            found.append(_Token(match[0], blank, lines))
            blank, lines = False, 0
    return found, "\n"


def _laid_out(tokens: Sequence[_Token]) -> str:
    written: list[str] = []
    around: list[str] = []
    saved = 0
    is_label = starts_line = False
    before = ""
    for number, token in enumerate(tokens):
        text = token.text
        in_region = not around or around[-1] == "region"
        is_end = text == "}" and bool(around) and around[-1] == "region"
        if text in (")", "]", ">", "}") and around:
            around.pop()
        if starts_line or is_end or (in_region and _starts(tokens, number, before)):
            is_label = text[0] == "^"
            written.append("\n" * max(saved + token.lines, bool(written)) + "  " * (around.count("region") - is_label))
            saved, starts_line = 0, False
        else:
            saved += token.lines
            is_number = (
                text == ":" and in_region and tokens[number + 1 : number + 2] and tokens[number + 1].text.isdigit()
            )
            if token.blank and not is_number and not _joined(before, text, in_brackets=not in_region):
                written.append(" ")
        written.append(text)
        if text in ("(", "[", "<"):
            around.append(text)
        elif text == "{":
            may_be = in_region or (around[-1] == "(" and before in ("(", ","))
            around.append("region" if may_be and _is_region(tokens, number) else text)
            starts_line = around[-1] == "region"
        elif text == ":" and is_label and in_region:
            starts_line = True
        before = text
    return "".join(written)


def _starts(tokens: Sequence[_Token], number: int, before: str) -> bool:
    """Return whether an operation, a block or an alias starts here, outside of all brackets but those of regions."""
    text = tokens[number].text
    behind = tokens[number + 1].text if number + 1 < len(tokens) else ""
    match text[0]:
        case "^":
            # Where a branch goes is not a block.
            return before in ("", "{", "}", ")", ">") and _is_label(tokens, number)
        case "%":
            return before not in ("=", ",") and _are_results(tokens, number)
        case "#" | "!":
            return behind == "=" and before != "="
        case '"':
            return behind == "(" and before not in _NAMED_IN
    is_name = "." in text or text in _ALONE
    return is_name and text[0].isalpha() and before not in _NAMED_IN and behind not in _BEHIND


def _is_label(tokens: Sequence[_Token], number: int) -> bool:
    depth = 0
    for token in tokens[number + 1 :]:
        depth += (token.text in "([<{") - (token.text in ")]>}")
        if depth == 0:
            if token.text == ":":
                return True
            if token.text not in (")", "("):
                return False
    return False


def _are_results(tokens: Sequence[_Token], number: int) -> bool:
    """Return whether names of results start here, with `=` behind the last one."""
    while number < len(tokens) and tokens[number].text[0] == "%":
        number += 1
        if [token.text for token in tokens[number : number + 1]] == [":"]:
            number += 2
        if number < len(tokens) and tokens[number].text == "=":
            return True
        if number >= len(tokens) or tokens[number].text != ",":
            return False
        number += 1
    return False


def _is_region(tokens: Sequence[_Token], number: int) -> bool:
    """Return whether a brace opens a region, and not attributes, axes or factors."""
    first, second = (tokens[place].text if place < len(tokens) else "" for place in (number + 1, number + 2))
    if first == "}" or first[:1].isdigit() or first[:1] in ("?", "-"):
        return False
    if first[:1] == '"':
        return second not in ("=", ",", "}", ":")
    is_key = (first[:1].isalpha() or first[:1] == "_") and second in ("=", ",", "}")
    return not is_key or first.rpartition(".")[2] == "return"


def _joined(before: str, text: str, *, in_brackets: bool) -> bool:
    """Return whether the printer writes no blank between two tokens."""
    if before in ("(", "[", "<") or text in _CLOSING:
        return True
    if (before == "{" or text == "}") and in_brackets:
        return True
    if text == "<":
        return before[:1] in ("#", "!") or (before[:1].isalpha() and "." not in before)
    if text == "(":
        return before in _CALLED or before[:1] == '"'
    if before[:1] == "%":
        return text[:1] == "#" or (text == ":" and in_brackets)
    if in_brackets:
        # `1 x4xf32` and `operand -0` are tokens of their own to the lexer, and one word to the printer.
        return (before.isdigit() and text[:1] == "x") or (before[:1].isalpha() and re.match("-[0-9]", text) is not None)
    return before == ":" and text[:1].isdigit()
