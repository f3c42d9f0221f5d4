"""Strings with C escapes."""

from __future__ import annotations

import pytest
from shardscope.parsers.grammar import unquote


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
