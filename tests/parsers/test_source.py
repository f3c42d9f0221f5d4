"""Texts and places in them."""

from __future__ import annotations

from itertools import accumulate

import pytest
from shardscope.parsers.source import Source, Span


@pytest.mark.parametrize("text", ["", "a", "\n", "a\n", "\n\na", "ab\ncd\n\ne", "é\nü"])
def test_the_line_around_each_byte(text: str) -> None:
    source = Source("t", text.encode())
    lines = source.data.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for start, line in zip(starts, lines, strict=False):
        for offset in range(start, start + len(line)):
            assert source.line_around(offset) == Span(start, start + len(line.rstrip(b"\n")))


@pytest.mark.parametrize("place", [0, 5, 500, 9_990])
def test_an_excerpt_of_a_long_line_has_what_is_around(place: int) -> None:
    """Its carets are under the marked word, and what is before and behind it is what the line has there."""
    line = "".join(f"{number:05}" for number in range(2000))
    shown, carets = Source("t", line.encode()).excerpt(Span(place, place + 5)).splitlines()
    at = carets.index("^")
    assert shown[at : at + 5] == line[place : place + 5]
    assert carets.count("^") == 5
    before, behind = shown[:at].partition("| ")[2].lstrip("…"), shown[at + 5 :].rstrip("…")
    assert line[:place].endswith(before)
    assert line[place + 5 :].startswith(behind)
    assert len(before) >= min(place, 20)
    assert len(behind) >= min(len(line) - place - 5, 20)


def test_an_excerpt_of_an_empty_line() -> None:
    assert Source("t", b"\nabc").excerpt(Span(0, 0)) == "1 | \n  | ^"
