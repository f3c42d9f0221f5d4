"""MLIR text in the layout of its printer: one operation a line, and blanks only where the printer writes them.

MLIR's lexer takes blanks, line breaks and comments between any two tokens, and needs none between most. All other
modules here rely on lines and on the printer's blanks, so a text in another layout is laid out anew before it is read.
What is between two tokens does not count in that: `_blank` decides. Operations keep their lines as long as each starts
on one of its own: lines that are saved inside of an operation are added behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..expressions import compiled
from ..source import Source
from .module import MlirModule
from .patterns import STRING, WORD

_TOKEN = compiled(
    rf"(?P<gap>(?:\s++|//[^\n]*+)++)|(?P<resources>\{{-#.*+)|@{STRING}|{STRING}|[%@!#^](?:[0-9]++|[{WORD}\-]++)"
    rf"|-?[0-9]x?[{WORD}]*+(?:(?<=[eE])[+\-][0-9]++)?|[A-Za-z_][{WORD}]*+|->|::|.",
    re.DOTALL,
)
_DIGITS = compiled(rb"[0-9]++")
_ALONE = frozenset({"return", "call", "call_indirect", "module"})
_BEHIND = frozenset({"=", ",", ")", "]", ">"})
"""Tokens behind the key of an attribute, not behind the name of an operation."""
_NAMED_IN = frozenset({"=", "applies", ","})
"""Tokens before the name of an operation that does not start there."""
_GO_ON = frozenset({"cond", "reducer", "do"})
"""Words with which a line goes on with the operation of the one before."""
_CALLED = frozenset({"loc", "callsite", "fused", "reducer"})
_SHAPED = frozenset({"tensor", "vector", "memref"})
_KEYS = frozenset({"in_shardings", "out_shardings", "out_sharding", "manual_axes"})
"""Keys of Shardy's with no blank before the equals sign."""
_SHARDY = ("#sdy.", "sdy.", "#mpmd.", "mpmd.", "!mpmd.")
_PRIORITY = compiled(r"p?[0-9]+")


class _Place(NamedTuple):
    """A token, and where it goes: on a line of its own, which is indented so deep, or not, behind a blank or not."""

    text: str
    depth: int | None
    blank: bool = False


class _Bracket(NamedTuple):
    """An open bracket: the character, or `region`, and how what is in it is written.

    `close` is what Shardy writes, `["x"=4]`; in the `shape` of a tensor, `4x8xf32`, there are no blanks at all.
    """

    kind: str
    style: str = ""


def in_printers_layout(source: Source) -> Source:
    """The text in the layout of the printer; as it is if it has that already, or cannot be read in that either."""
    if not is_unusual(source.data):
        return source
    laid_out = Source(source.name, as_printed(source.data))
    return source if MlirModule(laid_out).problems else laid_out


def is_unusual(data: bytes) -> bool:
    """Return whether a text is in another layout than the printer's; of lines that differ in numbers, one is read."""
    shapes: dict[bytes, _Shape | None] = {}
    depth = 0
    for line in _DIGITS.sub(b"0", data).split(b"\n"):
        if line.startswith(b"{-#"):
            break
        if line not in shapes:
            shapes[line] = _shape(line.decode("latin-1"))
        shape = shapes[line]
        if shape is None or (shape.indent is not None and shape.indent != depth - shape.closed):
            return True
        depth += shape.change
    return depth != 0


class _Shape(NamedTuple):
    """A line of the printer's: its depth, if that matters, less that of those before it, and of those behind it."""

    indent: int | None = None
    closed: int = 0
    change: int = 0


def _shape(line: str) -> _Shape | None:
    """The shape of a line; None if no printer writes it."""
    tokens = [match[0] for match in _TOKEN.finditer(line) if not match["gap"]]
    if not tokens:
        return None if line else _Shape()
    still_open: list[_Bracket] = []
    first, *others = _placed(tokens, still_open)
    goes_on = first.text in _GO_ON
    if goes_on:
        line = line.replace(")  {", ") {")
    written = "".join(" " * place.blank + place.text for place in (first, *others))
    indent, odd = divmod(len(line) - len(written), 2)
    is_start = goes_on or first.text == "}" or _starts(tokens, 0, "")
    if not is_start or line.lstrip(" ") != written or (odd and not goes_on) or any(p.depth is not None for p in others):
        return None
    if not _is_closed(tokens) or (still_open and still_open[-1] is not _REGION):
        return None
    closed = int(first.text == "}" or first.text[0] == "^")
    change = sum(bracket is _REGION for bracket in still_open) - (first.text == "}")
    return _Shape(None if goes_on else indent, closed, change)


def _is_closed(tokens: Sequence[str]) -> bool:
    """Return whether a line closes its own brackets only, but for that of a region in front, `}` or `})`."""
    depth = 0
    for number, text in enumerate(tokens):
        depth += (text in _OPENERS) - (text in _CLOSERS)
        if depth < 0:
            if tokens[0] != "}" or (number, text) not in ((0, "}"), (1, ")")):
                return False
            depth = 0
    return True


def as_printed(data: bytes) -> bytes:
    """The text, laid out as the printer does it."""
    tokens, breaks, rest = _tokens(data.decode("latin-1"))
    written: list[str] = []
    saved = 0
    for place, lines in zip(_placed(tokens, []), breaks, strict=True):
        if place.depth is None:
            saved += lines
            written.append(f" {place.text}" if place.blank else place.text)
        else:
            written.append("\n" * max(saved + lines, bool(written)) + "  " * place.depth + place.text)
            saved = 0
    return ("".join(written) + rest).encode("latin-1")


def _tokens(text: str) -> tuple[list[str], list[int], str]:
    """The tokens of a text up to its resources, the line breaks before each, and the resources as they are."""
    found: list[str] = []
    breaks: list[int] = []
    lines = 0
    for match in _TOKEN.finditer(text):
        if match["gap"]:
            lines = match[0].count("\n")
        elif match["resources"]:
            return found, breaks, "\n" * max(lines, 1) + match[0]
        else:
            found.append(match[0])
            breaks.append(lines)
            lines = 0
    return found, breaks, "\n"


def _placed(tokens: Sequence[str], around: list[_Bracket]) -> Iterator[_Place]:
    """Yield the place of each token. `around` are the brackets around the first, and at the end those still open."""
    is_label = starts_line = False
    before = ""
    for number, text in enumerate(tokens):
        inside = around[-1] if around else _REGION
        in_region = inside is _REGION
        is_end = text == "}" and in_region
        if text in _CLOSERS and around:
            around.pop()
        if not before or starts_line or is_end or (in_region and _starts(tokens, number, before)):
            is_label = text[0] == "^"
            yield _Place(text, max(around.count(_REGION) - is_label, 0))
            starts_line = False
        else:
            yield _Place(text, None, _blank(tokens, number, inside, is_label=is_label))
        if text == "{":
            may_be = in_region or (inside.kind == "(" and before in ("(", ","))
            starts_line = may_be and _is_region(tokens, number)
            around.append(_REGION if starts_line else _Bracket(text, _style(tokens, number, inside)))
        elif text in _OPENERS:
            around.append(_Bracket(text, _style(tokens, number, inside)))
        elif text == ":" and is_label and in_region:
            starts_line = True
        before = text


_REGION = _Bracket("region")
_OPENERS = frozenset("([<{")
_CLOSERS = frozenset(")]>}")


def _style(tokens: Sequence[str], number: int, inside: _Bracket) -> str:
    """Return how the text in an opening bracket is written."""
    if tokens[number] != "<":
        return inside.style if inside.style != "shape" else ""
    before, behind = _at(tokens, number - 1), _at(tokens, number + 1)
    if before in _SHAPED:
        return "shape"
    if before == "dense":
        return before
    if before == "#sdy.propagation_edges":
        return "edges"
    is_close = before.startswith(_SHARDY) or before in ("mesh", "=", "#sdy") or behind[:1] == "@"
    return "close" if is_close or inside.style == "close" else ""


def _at(tokens: Sequence[str], number: int) -> str:
    return tokens[number] if 0 <= number < len(tokens) else ""


def _starts(tokens: Sequence[str], number: int, before: str) -> bool:
    """Return whether an operation, a block or an alias starts here, outside of all brackets but those of regions."""
    text = tokens[number]
    behind = tokens[number + 1] if number + 1 < len(tokens) else ""
    match text[0]:
        case "^":
            # Where a branch goes is not a block.
            return before in ("", "{", "}", ")", ">") and _is_label(tokens, number)
        case "%":
            return before not in ("=", ",") and _are_results(tokens, number)
        case "#" | "!":
            return behind == "=" and before != "="
        case '"':
            return behind == "(" and before not in _NAMED_IN and before != "@"
    is_name = "." in text or text in _ALONE
    return is_name and text[0].isalpha() and before not in _NAMED_IN and behind not in _BEHIND


def _is_label(tokens: Sequence[str], number: int) -> bool:
    depth = 0
    for token in tokens[number + 1 :]:
        depth += (token in "([<{") - (token in ")]>}")
        if depth == 0:
            if token == ":":
                return True
            if token not in (")", "("):
                return False
    return False


def _are_results(tokens: Sequence[str], number: int) -> bool:
    while number < len(tokens) and tokens[number][0] == "%":
        number += 1
        if tokens[number : number + 1] == [":"]:
            number += 2
        if number < len(tokens) and tokens[number] == "=":
            return True
        if number >= len(tokens) or tokens[number] != ",":
            return False
        number += 1
    return False


def _is_region(tokens: Sequence[str], number: int) -> bool:
    first, second = (tokens[place] if place < len(tokens) else "" for place in (number + 1, number + 2))
    if first == "}" or first[:1].isdigit() or first[:1] in ("?", "-"):
        return False
    if first[:1] == '"':
        return second not in ("=", ",", "}", ":")
    is_key = (first[:1].isalpha() or first[:1] == "_") and second in ("=", ",", "}")
    return not is_key or first.rpartition(".")[2] == "return"


def _blank(tokens: Sequence[str], number: int, inside: _Bracket, *, is_label: bool) -> bool:
    """Return whether the printer writes a blank in front of a token that does not start a line."""
    before, text, behind = tokens[number - 1], tokens[number], _at(tokens, number + 1)
    if before in _OPENERS or text in _NONE_BEFORE or "::" in (before, text) or before in ("-", "@"):
        return False
    if before == ",":
        return inside != _Bracket("(", "dense")
    if inside.style == "shape":
        return False
    is_close = inside.style == "close"
    if "=" in (before, text):
        return not is_close and (inside is not _REGION or tokens[number - 1 - (before == "=")] not in _KEYS)
    if text in ("x", "->") and before == "]" and _are_dimensions(tokens, number - 1):
        return False
    if before in ("x", "->") and text == "[" and _are_dimensions(tokens, number - 2):
        return False
    if "->" in (before, text):
        return not is_close
    if text == ":":
        return not is_close and _before_colon(before, behind, inside, is_label=is_label)
    if before == ":":
        return not is_close and (not text[0].isdigit() or _is_type_of_array(tokens, number, inside))
    if text == "<":
        return not (before[0].isalpha() or before[0] in "#!_")
    if text == "(":
        return before not in _CALLED and before[0] not in '"@^' and not (before[0].isalpha() and "." in before)
    if is_close and text in ("{", "[") and (before[0].isalpha() or before[0] == '"'):
        return False
    if text == "[":
        return before != "fused" and not (before[0] == "%" and _at(tokens, number - 2).endswith("get_tuple_element"))
    if text[0] == "#":
        return before[0] != "%" or not text[1:].isdigit()
    # `}p1`, `(1)2` and `operand-0`.
    is_tail = (before in (")", "}") and _PRIORITY.fullmatch(text)) or text[0] == "-"
    return not (is_tail and inside.style in ("close", "edges"))


def _are_dimensions(tokens: Sequence[str], number: int) -> bool:
    """Return whether a list that ends here names dimensions of a convolution: `[b, 0, 1, f]`."""
    while number > 0 and tokens[number] != "[":
        if tokens[number] in ("b", "f", "i", "o"):
            return True
        number -= 1
    return False


def _before_colon(before: str, behind: str, inside: _Bracket, *, is_label: bool) -> bool:
    if behind[:1].isdigit():
        # Of positions in files, of slices, and the number of results.
        return before == "to"
    match inside.kind:
        case "region":
            return not is_label
        case "(":
            return before[0] != "%" and before != "init"
        case "<":
            return not before[0].isalpha()
    return True


def _is_type_of_array(tokens: Sequence[str], number: int, inside: _Bracket) -> bool:
    """Return whether the colon before a token is that of `array<i64: 1, 2>`."""
    return inside.kind == "<" and _at(tokens, number - 2)[:1].isalpha() and _at(tokens, number - 4) == "array"


_NONE_BEFORE = frozenset(")]>,}")
