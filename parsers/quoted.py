r"""Quoted strings with C escapes, as XLA prints them (absl::CEscape: `\n`, `\"`, octal `\303`, hex `\xc3`)."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def unquote(text: str) -> str:
    """The string that a quoted text stands for; the quotes may be single or double."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(_character, inner.encode("utf-8", "replace")).decode("utf-8", "replace")


def _character(match: re.Match[bytes]) -> bytes:
    octal, short, four, eight, letter = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if short is not None:
        return bytes([int(short, 16)])
    if four is not None or eight is not None:
        code = int(four or eight, 16)
        return chr(code).encode("utf-8", "replace") if code <= 0x10FFFF else b"?"
    return _LETTERS.get(letter, letter)
