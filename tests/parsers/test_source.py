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
