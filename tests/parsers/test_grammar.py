"""Grammars: what their rules mean, and how what does not fit them is reported."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from lark import Lark, Tree
from shardscope.parsers import grammar
from shardscope.parsers.errors import ParseError
from shardscope.parsers.grammar import STARTS, Grammar, anchored, lark_of
from shardscope.parsers.source import Source, Span

from .test_tables import TOOL


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Grammar:
    """A small grammar of its own: sums of numbers that are at most 9."""

    def digit(text: str) -> int:
        if len(text) > 1:
            raise ValueError(f"{text} is too much")
        return int(text)

    lark = Lark('start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n%ignore " "\n', parser="lalr")
    (tmp_path / "sums.json").write_text(TOOL["tables"](lark))
    monkeypatch.setattr("shardscope.parsers.lalr.automaton.FOLDER", str(tmp_path))
    return Grammar("sums", {"start": lambda *numbers: sum(numbers), "NUMBER": digit})


def test_actions(sums: Grammar) -> None:
    assert sums.parse("1 + 2+3") == 6


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("1 + x", "text:1:5: unexpected 'x'\n1 | 1 + x\n  |     ^\nexpected number"),
        ("1 + + 2", "text:1:5: unexpected '+'\n1 | 1 + + 2\n  |     ^\nexpected number"),
        ("1 +", "text:1:4: unexpected end of the text\n1 | 1 +\n  |    ^\nexpected number"),
        ("1\n 2", "text:1:2: unexpected '\\n'\n1 | 1\n  |  ^\nexpected '+' or the end of the text"),
        ("é", "text:1:1: unexpected 'é'\n1 | é\n  | ^\nexpected number"),
        ("1 + 23", "text:1:1: 23 is too much\n1 | 1 + 23\n  | ^^^^^^"),
        ("", "text:1:1: unexpected end of the text\n1 | \n  | ^\nexpected number"),
    ],
)
def test_errors_are_drawn(sums: Grammar, text: str, drawn: str) -> None:
    with pytest.raises(ParseError) as caught:
        sums.parse(text)
    assert str(caught.value) == drawn


@pytest.mark.parametrize("digits", [1, 39, 40, 41, 1000])
def test_what_is_unexpected_is_quoted_up_to_40_characters(sums: Grammar, digits: int) -> None:
    with pytest.raises(ParseError) as caught:
        sums.parse("1 " + "2" * digits)
    assert caught.value.problem.message == f"unexpected '{'2' * min(digits, 40)}'"
    assert caught.value.problem.span == Span(2, 2 + digits)


def test_errors_of_a_piece_at_their_place_in_a_text(sums: Grammar) -> None:
    whole = Source("f.txt", b"first\nsum: 1 + x\n")
    with pytest.raises(ParseError) as caught:
        sums.parse("1 + x")
    problem = anchored(caught.value, whole, offset=11).problem
    assert problem.span == Span(15, 16)
    assert str(problem).startswith("f.txt:2:10: unexpected 'x'\n2 | sum: 1 + x\n")


def test_every_grammar_file_is_used() -> None:
    files = {path.stem: path.read_text() for path in Path(inspect.getfile(grammar)).parent.glob("*.lark")}
    imported = {name for name in files if any(f"%import .{name} " in text for text in files.values())}
    assert files.keys() - STARTS.keys() <= imported
    assert STARTS.keys() <= files.keys()
    for name, text in files.items():
        assert text.startswith("//"), f"{name}.lark does not say what it is"


def test_lark_reads_texts_by_the_same_grammars() -> None:
    tree = lark_of("replica_groups").parse("[2,4]<=[8]", start="groups")
    assert isinstance(tree, Tree)
    assert tree.data == "iota"
    assert tree.children == ["2,4", "8", None]


def test_options_of_lark() -> None:
    assert lark_of("hlo_types", propagate_positions=True).parse("(f32[8])").meta.end_column == 9
