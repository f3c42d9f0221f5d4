"""Tables of grammars: they are what Lark makes of the grammars, and are read without it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.parsers.errors import ShardscopeError
from shardscope.parsers.grammar import STARTS, lark_of
from shardscope.parsers.lalr import load_tables
from shardscope.parsers.lalr.automaton import FOLDER

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "grammars.py"))


@pytest.mark.parametrize("name", STARTS)
def test_tables_are_those_of_the_grammar(name: str) -> None:
    kept = Path(FOLDER, f"{name}.json").read_text(encoding="utf-8")
    assert TOOL["tables"](lark_of(name)) == kept, "run `make grammars`"


def test_there_are_no_tables_without_a_grammar() -> None:
    assert {path.stem for path in Path(FOLDER).iterdir()} == set(STARTS)


def test_the_order_of_sets_does_not_change_tables() -> None:
    script = "import runpy; from shardscope.parsers.grammar import lark_of; "
    script += f"print(runpy.run_path({str(TOOL['__file__'])!r})['tables'](lark_of('gspmd')), end='')"
    kept = Path(FOLDER, "gspmd.json").read_text(encoding="utf-8")
    for seed in "1", "2":
        command, environment = [sys.executable, "-c", script], os.environ | {"PYTHONHASHSEED": seed}
        assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == kept


@pytest.mark.parametrize("content", [None, "", "nonsense", "{}", "[]", '{"rules": [1], "scanners": []}'])
def test_damaged_tables(content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if content is not None:
        (tmp_path / "hlo.json").write_text(content)
    monkeypatch.setattr("shardscope.parsers.lalr.automaton.FOLDER", str(tmp_path))
    with pytest.raises(ShardscopeError) as caught:
        load_tables("hlo")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"cannot read the grammar tables {tmp_path / 'hlo.json'} (")
    assert line.endswith("); reinstall shardscope")


def test_reading_texts_imports_no_lark_and_writes_nothing(tmp_path: Path) -> None:
    code = """
import sys
from shardscope.parsers.sharding_syntax.replica_groups import parse_replica_groups
print(parse_replica_groups("[2,2]<=[4]").devices(4), "lark" in sys.modules)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "((0, 1), (2, 3)) False\n"
    assert not list(tmp_path.iterdir())
