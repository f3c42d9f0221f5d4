"""Grammars: where they are kept, and how what does not fit them is reported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.grammar import FOLDER, Grammar, anchored
from shardscope.parsers.source import Source, Span

READS = "from shardscope.parsers.replica_groups import parse_replica_groups as p; print(p('[2,2]<=[4]').devices(4))"
EXPECTED = "((0, 1), (2, 3))\n"


def in_a_process(cache: Path) -> str:
    """What a process prints that parses groups with that folder for the user's caches."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-W", "error", "-c", READS]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def pickles(cache: Path) -> list[Path]:
    return sorted((cache / "shardscope" / "grammars").glob("*.pickle"))


def test_built_once_and_kept(tmp_path: Path) -> None:
    assert in_a_process(tmp_path) == EXPECTED
    (kept,) = pickles(tmp_path)
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    before = kept.stat().st_mtime_ns
    assert in_a_process(tmp_path) == EXPECTED
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [b"", b"nonsense", b"0" * 64 + b"\n\x80\x04."])
def test_a_damaged_pickle_is_built_anew(tmp_path: Path, content: bytes) -> None:
    in_a_process(tmp_path)
    (kept,) = pickles(tmp_path)
    kept.write_bytes(content)
    assert in_a_process(tmp_path) == EXPECTED
    mended = kept.read_bytes()
    assert mended != content
    assert in_a_process(tmp_path) == EXPECTED
    assert kept.read_bytes() == mended


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "shardscope" / "grammars"
    folder.mkdir(parents=True)
    folder.chmod(0o770)
    assert in_a_process(tmp_path) == EXPECTED
    assert not pickles(tmp_path)


def test_a_link_to_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "shardscope").mkdir()
    (tmp_path / "shardscope" / "grammars").symlink_to(tmp_path / "elsewhere")
    assert in_a_process(tmp_path) == EXPECTED
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "shardscope").write_text("a file")
    assert in_a_process(tmp_path) == EXPECTED


def test_lark_is_imported_only_when_something_is_parsed() -> None:
    code = "import sys, shardscope.parsers.hlo, shardscope.parsers.gspmd; print('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Grammar:
    """A small grammar of its own: sums of numbers that are at most 9."""

    def digit(text: str) -> int:
        if len(text) > 1:
            raise ValueError(f"{text} is too much")
        return int(text)

    (tmp_path / "sums.lark").write_text('start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n%ignore " "\n')
    monkeypatch.setattr("shardscope.parsers.grammar.FOLDER", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Grammar("sums.lark", {"start": lambda *numbers: sum(numbers), "NUMBER": digit})


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


def test_errors_of_a_piece_at_their_place_in_a_text(sums: Grammar) -> None:
    whole = Source("f.txt", b"first\nsum: 1 + x\n")
    with pytest.raises(ParseError) as caught:
        sums.parse("1 + x")
    problem = anchored(caught.value, whole, offset=11).problem
    assert problem.span == Span(15, 16)
    assert str(problem).startswith("f.txt:2:10: unexpected 'x'\n2 | sum: 1 + x\n")


def test_every_grammar_file_is_used() -> None:
    source = "".join(path.read_text() for path in Path(FOLDER).rglob("*.py"))
    grammars = {path.name: path.read_text() for path in Path(FOLDER).glob("*.lark")}
    for name, text in grammars.items():
        stem = name.removesuffix(".lark")
        assert f'"{name}"' in source or any(f".{stem} " in other for other in grammars.values()), name
        assert text.startswith("//"), f"{name} does not say what it is"
