"""Kept regular expressions: they are those that `re.compile` makes, whatever is in the file that keeps them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.parsers import expressions
from shardscope.parsers.expressions import compiled

SCRIPT = """
import re, sys
from shardscope.parsers import expressions
made = []
expressions._parts_of = lambda *key, parts_of=expressions._parts_of: made.append(key) or parts_of(*key)
from shardscope.parsers.hlo.printed import exact
from shardscope.parsers.mlir.patterns import OPERATIONS, for_bytes

assert exact() == re.compile(exact().pattern)
assert for_bytes(OPERATIONS) == re.compile(OPERATIONS.encode())
kept = expressions._kept()
for (pattern, flags), parts in kept.items():
    found, wanted = expressions.compiled(pattern, flags), re.compile(pattern, flags)
    assert (found, found.groups, found.groupindex) == (wanted, wanted.groups, wanted.groupindex)
print(len(kept), len(made))
"""


def numbers(folder: Path) -> list[int]:
    """How many were kept, and how many are compiled, by a process whose bytecode is in a folder."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder)
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    return list(map(int, done.stdout.split()))


def test_what_one_process_compiles_the_next_has(tmp_path: Path) -> None:
    before, first = numbers(tmp_path)
    assert before == 0
    assert first > 20
    assert numbers(tmp_path) == [first, 0]


@pytest.mark.parametrize("damage", ["empty", "cut off", "other"])
def test_a_damaged_file_is_written_anew(damage: str, tmp_path: Path) -> None:
    _, first = numbers(tmp_path)
    (file,) = tmp_path.rglob("expressions.*.pyc.*")
    whole = file.read_bytes()
    other = {"empty": b"", "cut off": whole[: len(whole) // 2], "other": b"i\x01\x00\x00\x00"}
    file.write_bytes(other[damage])
    assert numbers(tmp_path)[0] == 0
    assert numbers(tmp_path) == [first, 0]


@pytest.mark.parametrize("parts", [(), (0, b"\xff" * 8, 0, {}, (None,)), (0, b"", "x", {}, ())])
def test_code_that_is_none_is_not_run(parts: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_kept", lambda: {("a|(b)", 0): parts})
    compiled.cache_clear()
    assert compiled("a|(b)") == re.compile("a|(b)")
