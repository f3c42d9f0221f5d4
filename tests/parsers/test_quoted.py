"""Strings with C escapes."""

from __future__ import annotations

import pytest
from shardscope.parsers.grammar import unquote

CODES = (0, 0x41, 0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFE, 0x10FFFF)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('""', ""),
        ('"a"', "a"),
        ("'a'", "a"),
        (r'"a\"b\\c"', r'a"b\c'),
        (r"'it\'s'", "it's"),
        (r'"\n\t\r"', "\n\t\r"),
        (r'"\303\251"', "é"),
        (r'"\xc3\xa9"', "é"),
        (r'"\u00e9\U0001F600"', "é😀"),
        ('"é"', "é"),
        (r'"\377"', "�"),
        (r'"\q"', "q"),
        (r'"\U7fffffff"', "?"),
    ],
)
def test_unquote(text: str, meaning: str) -> None:
    assert unquote(text) == meaning


@pytest.mark.parametrize("code", CODES)
def test_numbered_characters_are_those_of_python(code: int) -> None:
    for escape in (rf"\U{code:08x}", rf"\u{code:04X}" if code < 0x10000 else ""):
        assert unquote(f'"<{escape}>"') == f"<{escape}>".encode().decode("unicode_escape")


@pytest.mark.parametrize("code", [0x110000, 0x110001, 0xFFFFFFFF])
def test_a_number_of_no_character(code: int) -> None:
    with pytest.raises(UnicodeDecodeError):
        rf"\U{code:08x}".encode().decode("unicode_escape")
    assert unquote(rf'"\U{code:08x}"') == "?"


@pytest.mark.parametrize("letter", "\\'\"abfnrtv")
def test_letters_are_those_of_python(letter: str) -> None:
    assert unquote(f'"a\\{letter}b"') == f"a\\{letter}b".encode().decode("unicode_escape")


@pytest.mark.parametrize("byte", range(256))
def test_bytes_in_octal_and_hexadecimal(byte: int) -> None:
    """Those of one character, in front of a digit that is none of theirs."""
    expected = (b"(" + bytes([byte]) + b"9)").decode("utf-8", "replace")
    assert unquote(rf'"(\{byte:03o}9)"') == unquote(rf'"(\x{byte:02x}9)"') == unquote(rf'"(\X{byte:02X}9)"') == expected
