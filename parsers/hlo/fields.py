"""Lists of `key=value` in HLO text: attributes, metadata, frontend attributes, rows of the source tables.

Keys and values come out as text. What a value means is for the grammar of its own language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..expressions import compiled
from ..grammar import unquote
from ..record import Record
from ..source import Frame
from .patterns import ANYWHERE, IN_TEXT, NAME, REMARK, SPACE

_ATTRIBUTE = compiled(rf"(?:, |{SPACE},{SPACE})({NAME})\s*+=\s*+({ANYWHERE.value})".encode(), re.DOTALL)
_KEY = compiled(rf"{SPACE},{SPACE}({NAME})\s*+=\s*+(?=[{{(\[])".encode())
_BRACKET = compiled(rf"{ANYWHERE.string}|/\*index=[0-9]++\*/|([{{(\[])|[}})\]]|/[*/]".encode(), re.DOTALL)
_GAP = compiled(rf"{IN_TEXT.string}|((?:\s|{REMARK})++)", re.DOTALL)
_MAY_BE_UNUSUAL = compiled(rb"[\s/]").search
_UNUSUAL = compiled(
    r"[(\[{<=:][ \t]|[ \t](?:[)\]},:=<(\[]|T[ \t]*+\()|[ \t]{2}|\t|[0-9],[ \t][0-9]|\},[ \t]\{|[\r\n]|/[/*]"
)
_TRANSPOSED = compiled(r"T\s*+\(")
_FIELD = compiled(
    rf"([^\s=,{{}}\"']++)\s*+=\s*+({IN_TEXT.string}|{IN_TEXT.braces}|[0-9]++(?=[A-Za-z_]++=)|[^\s,{{}}]++)", re.DOTALL
)
_AS_THEY_ARE = frozenset({b"metadata", b"frontend_attributes", b"backend_config"})
"""Attributes whose values are read in any layout."""


def attributes(data: bytes, start: int, end: int) -> tuple[Mapping[str, str], int]:
    """The attributes `, key=value, …` from `start` on, and where their list ends."""
    found: dict[str, str] = {}
    while start < end:
        if attribute := _ATTRIBUTE.match(data, start, end):
            key, value = attribute.groups()
            start = attribute.end()
        # A value may be nested too deep for the pattern.
        elif (name := _KEY.match(data, start, end)) and (close := bracket_end(data, name.end(), end)):
            key, value = name[1], data[name.end() : close]
            start = close
        else:
            break
        text = value.decode("utf-8", "replace")
        found[key.decode()] = text if key in _AS_THEY_ARE or not _MAY_BE_UNUSUAL(value) else as_printed(text)
    return found, start


@lru_cache(maxsize=8192)
def fields(text: str) -> Mapping[str, str]:
    """The fields of a list in braces, separated by commas or spaces: `{op_name="f" source_line=3}`."""
    return dict(_FIELD.findall(as_printed(text), 1))


def without_remarks(text: str) -> str:
    """A text with a blank for each remark."""
    return _GAP.sub(_plain, text) if "/*" in text or "//" in text else text


def _plain(found: re.Match[str]) -> str:
    return " " if found[1] else found[0]


def as_printed(text: str) -> str:
    """The value of an attribute without remarks, and with blanks only where XLA's printer has some."""
    if not _UNUSUAL.search(text):
        return text
    once = _GAP.sub(_blank, text)
    # Behind what stood between two blanks, the second time sees what is before it.
    return (_GAP.sub(_blank, once) if _UNUSUAL.search(once) else once).strip()


def _blank(found: re.Match[str]) -> str:
    if not found[1]:
        return found[0]
    start, end = found.span()
    before, behind = found.string[max(start - 2, 0) : start], found.string[end : end + 1]
    if before[-1:] in _OPENING or behind in _CLOSING:
        return ""
    match before[-1:]:
        case ":":
            return "" if behind.isalnum() else " "
        case ",":
            is_list = (before[-2:-1].isdigit() and behind.isdigit()) or (before[-2:-1] == "}" and behind == "{")
            return "" if is_list else " "
        case "]" | ")" if _TRANSPOSED.match(found.string, end) or (before[-1:] == ")" and behind.isupper()):
            return ""
        case letter if letter.isalnum() and behind in ("(", "["):
            return ""
    return " "


_OPENING = frozenset(("", *"([{<="))
_CLOSING = frozenset(("", *")]},:=<"))


def plain(value: str) -> str:
    """The text of a value without quotes, if it has any."""
    return unquote(value) if value[:1] in ("'", '"') else value


def number(text: str | None) -> int | None:
    """A number that is not negative; None for any other text."""
    return int(text) if text and text.isdecimal() and len(text) < 20 else None


def number_in(found: Mapping[str, str], key: str) -> int:
    """The number in a field, 0 if there is none."""
    return number(found.get(key)) or 0


def position(file: str, function: str, found: Mapping[str, str], prefix: str = "") -> Frame:
    """The frame whose lines and columns are in fields; the end is that of the start where only a start is given."""
    line, column, end_line, end_column = (
        number_in(found, prefix + key) for key in ("line", "column", "end_line", "end_column")
    )
    return Frame(file, function, line, end_line or line, column, end_column or column)


def bracket_end(data: bytes, start: int, end: int) -> int | None:
    """Behind the bracket that closes the one at `start`; None if nothing does, or a remark that XLA would not print."""
    depth = 0
    for match in _BRACKET.finditer(data, start, end):
        if match[1]:
            depth += 1
        elif match[0] in b"})]":
            depth -= 1
            if depth == 0:
                return match.end()
        elif match[0] in (b"/*", b"//"):
            return None
    return None


class Metadata(Record, frozen=True):
    """The origin of an instruction in the program that was traced.

    Texts up to JAX 0.7 have the innermost source position here (`frame`), later ones the number of a stack frame in
    the module's tables (`stack_frame_id`).
    """

    op_name: str = ""
    op_type: str = ""
    stack_frame_id: int | None = None
    frame: Frame | None = None


@lru_cache(maxsize=8192)
def parse_metadata(text: str) -> Metadata:
    """The metadata that a text in braces spells; fields that it does not have are left at their defaults."""
    found = fields(text)
    frame = position(plain(found["source_file"]), "", found, "source_") if "source_file" in found else None
    name, kind = (plain(found.get(key, "")) for key in ("op_name", "op_type"))
    return Metadata(name, kind, number_in(found, "stack_frame_id") or None, frame)
