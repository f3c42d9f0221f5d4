"""Texts and places in them."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardscope.parsers.source import EXCERPT_WIDTH, Source, Span, name_set, occurrences

from tests.sweeps import examples


@pytest.mark.parametrize("text", ["", "a", "\n", "a\n", "\n\na", "ab\ncd\n\ne", "é\nü"])
def test_the_line_around_each_byte(text: str) -> None:
    source = Source("t", text.encode())
    lines = source.data.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for start, line in zip(starts, lines, strict=False):
        for offset in range(start, start + len(line)):
            assert source.line_around(offset) == Span(start, start + len(line.rstrip(b"\n")))


@pytest.mark.parametrize("text", ["", "a", "\n", "\na", "a\n", "\n\na", "ab\ncd\n\ne", "é\nüx"])
def test_the_line_and_the_column_of_each_character(text: str) -> None:
    source = Source("t", text.encode())
    for number in range(len(text) + 1):
        before = f"{text[:number]}|".splitlines()
        assert source.position(len(text[:number].encode())) == (len(before), len(before[-1]))


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


@pytest.mark.parametrize("length", [EXCERPT_WIDTH - 1, EXCERPT_WIDTH, EXCERPT_WIDTH + 1])
@pytest.mark.parametrize("marked", [1, EXCERPT_WIDTH - 1, EXCERPT_WIDTH, EXCERPT_WIDTH + 1])
@pytest.mark.parametrize("letter", "aé日😀")
def test_a_line_that_just_fits_is_drawn_in_full(length: int, marked: int, letter: str) -> None:
    shown, carets = Source("t", (letter * length).encode()).excerpt(Span(0, marked * len(letter.encode()))).splitlines()
    assert shown == f"1 | {letter * min(length, EXCERPT_WIDTH)}{'…' if length > EXCERPT_WIDTH else ''}"
    assert carets == f"  | {'^' * min(marked, length, EXCERPT_WIDTH)}"


@settings(max_examples=examples(40, 150))
@given(st.text("ab\t\x1bé日 ", max_size=30), st.integers(0, 400), st.text("ab\t\x1bé日", max_size=300), st.data())
def test_an_excerpt_is_a_window_of_the_line(start: str, blanks: int, end: str, data: st.DataObject) -> None:
    """The whole line is drawn, and cut then."""
    line = start + "x" * blanks + end
    first = data.draw(st.integers(0, len(line)))
    last = data.draw(st.integers(first, len(line)))
    bytes_of = [len(line[:place].encode()) for place in (first, last)]
    above = data.draw(st.sampled_from(["", "\n", "over\n", "é\n\n"]))
    below = data.draw(st.sampled_from(["", "\n", "\nunder"]))
    skipped = len(above.encode())
    shown, carets = (
        Source("t", (above + line + below).encode())
        .excerpt(Span(bytes_of[0] + skipped, bytes_of[1] + skipped))
        .splitlines()
    )
    drawn = "".join(c if c.isprintable() else " " if c == "\t" else "�" for c in line)
    left = max(0, first - EXCERPT_WIDTH // 2)
    window = drawn[left : left + EXCERPT_WIDTH]
    lead, tail = "…" if left else "", "…" if left + EXCERPT_WIDTH < len(drawn) else ""
    number = str(above.count("\n") + 1)
    assert shown == f"{number} | {lead}{window}{tail}"
    marked = max(1, min(last - first, EXCERPT_WIDTH - (first - left)))
    assert carets == f"{' ' * len(number)} | {' ' * (len(lead) + first - left)}{'^' * marked}"


@given(st.text("ab\né日", max_size=30), st.integers(-5, 90))
def test_lines_and_columns_are_counted_in_characters(text: str, offset: int) -> None:
    data = text.encode()
    before = data[: max(offset, 0)].decode("utf-8", "replace")
    *lines, last = before.split("\n")
    assert Source("t", data).position(offset) == (len(lines) + 1, len(last) + 1)


def test_an_excerpt_of_an_empty_line() -> None:
    assert Source("t", b"\nabc").excerpt(Span(0, 0)) == "1 | \n  | ^"


@given(
    st.binary(max_size=12).map(lambda data: bytes(97 + byte % 2 for byte in data)),
    st.sampled_from([b"a", b"aa", b"aba"]),
)
def test_occurrences_may_overlap(data: bytes, word: bytes) -> None:
    assert list(occurrences(data, word)) == [at for at in range(len(data)) if data.startswith(word, at)]


def test_a_string_is_one_name() -> None:
    assert name_set("xy") == {"xy"}
    assert name_set(["xy", "z"]) == name_set({"xy", "z"}) == {"xy", "z"}
    assert name_set(()) == frozenset()
