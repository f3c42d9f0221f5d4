"""Tables of grammars: built once, and kept where nobody else can change them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

READS = "from shardscope.parsers.replica_groups import parse_replica_groups as p; print(p('[2,2]<=[4]').devices(4))"
EXPECTED = "((0, 1), (2, 3))\n"


def in_a_process(cache: Path, code: str = READS) -> str:
    """What a process prints that parses groups with that folder for the user's caches."""
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def kept_tables(cache: Path) -> list[Path]:
    return sorted((cache / "shardscope" / "grammars").iterdir())


def test_built_once_and_kept(tmp_path: Path) -> None:
    assert in_a_process(tmp_path) == EXPECTED
    (kept,) = kept_tables(tmp_path)
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    before = kept.stat().st_mtime_ns
    assert in_a_process(tmp_path) == EXPECTED
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [b"", b"nonsense", b"0" * 64 + b"\n\x80\x04."])
def test_damaged_tables_are_built_anew(tmp_path: Path, content: bytes) -> None:
    in_a_process(tmp_path)
    (kept,) = kept_tables(tmp_path)
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
    assert not kept_tables(tmp_path)


def test_a_link_to_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "shardscope").mkdir()
    (tmp_path / "shardscope" / "grammars").symlink_to(tmp_path / "elsewhere")
    assert in_a_process(tmp_path) == EXPECTED
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "shardscope").write_text("a file")
    assert in_a_process(tmp_path) == EXPECTED


def test_tables_of_another_grammar_are_built_anew(tmp_path: Path) -> None:
    in_a_process(tmp_path)
    (kept,) = kept_tables(tmp_path)
    right = json.loads(kept.read_text())
    assert set(right["sources"]) == {"replica_groups.lark", "mesh.lark"}
    changed = {"sources": right["sources"] | {"mesh.lark": "// another"}, "tables": right["tables"] | {"starts": {}}}
    kept.write_text(json.dumps(changed))
    assert in_a_process(tmp_path) == EXPECTED
    assert json.loads(kept.read_text())["sources"] == right["sources"]


def test_lark_is_imported_only_to_build_tables(tmp_path: Path) -> None:
    code = f"{READS}; import sys; print('lark' in sys.modules)"
    assert in_a_process(tmp_path, code) == f"{EXPECTED}True\n"
    assert in_a_process(tmp_path, code) == f"{EXPECTED}False\n"
