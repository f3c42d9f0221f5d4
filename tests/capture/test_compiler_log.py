"""What XLA writes to file descriptor 2, split into messages."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from shardscope.inspector.capture.protocol.workspace import (
    MAX_MESSAGE_CHARACTERS,
    MAX_MESSAGES,
    diverted,
    fatal_message,
    read_messages,
    read_optimized,
    read_stages,
)

# As JAX 0.12, 0.7.1 and 0.10 print them.
LOG = """\
a line of a plugin's
W1121 06:14:39.059388   18502 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler
cannot go from one to the other.
2026-11-21 07:10:29.321446: E external/xla/xla/service/slow_operation_alarm.cc:73] Very slow compile
E0000 00:00:1732167891.123456   12345 cpu-client.cc:7] text
W1121 06:14:39.059388   18502 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler
cannot go from one to the other.
"""


def test_messages(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    messages = read_messages(tmp_path / "log", "compile")
    assert [(m.level, m.location, m.text.partition("\n")[0][:20]) for m in messages] == [
        ("info", None, "a line of a plugin's"),
        ("warning", "spmd_partitioner.cc:666", "[SPMD] Involuntary f"),
        ("error", "slow_operation_alarm.cc:73", "Very slow compile"),
        ("error", "cpu-client.cc:7", "text"),
    ]
    assert messages[1].text.endswith("from one to the other.")
    assert {message.phase for message in messages} == {"compile"}


def test_a_failed_check() -> None:
    assert fatal_message(LOG) is None
    text = LOG + "F1121 06:41:02.784156   26595 hlo_instruction.cc:234] Check failed: x == y (1 vs. 2)\n*** Stack\n"
    assert fatal_message(text) == ("Check failed: x == y (1 vs. 2)", "hlo_instruction.cc:234")


def test_floods_are_cut(tmp_path: Path) -> None:
    line = "W1121 06:14:39.059388   18502 a.cc:1] "
    (tmp_path / "log").write_text(line + "x" * (MAX_MESSAGE_CHARACTERS * 2) + "\n")
    (message,) = read_messages(tmp_path / "log", "compile")
    assert len(message.text) == MAX_MESSAGE_CHARACTERS
    (tmp_path / "log").write_text("".join(f"{line}{number}\n" for number in range(MAX_MESSAGES * 2)))
    assert len(read_messages(tmp_path / "log", "compile")) == MAX_MESSAGES
    assert read_messages(tmp_path / "none", "compile") == []


def test_what_goes_past_python_is_kept(tmp_path: Path) -> None:
    """In a file that nobody else may read, behind what is in it; afterwards it goes where it went before."""
    before, path = os.fstat(2), tmp_path / "log"
    for line in (b"one\n", b"two\n"):
        with diverted(path):
            os.write(2, line)
        assert os.path.samestat(os.fstat(2), before)
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_stages_that_were_written(tmp_path: Path) -> None:
    """What no text can be is replaced in the optimized program, and there may be none."""
    assert (read_stages(str(tmp_path)), read_optimized(str(tmp_path))) == ({}, None)
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").write_bytes(b"HloModule \xff")
    (tmp_path / "module_0001.jit_f.0002.p.after_spmd-partitioning.before_q.txt").write_bytes(b"HloModule m")
    assert read_optimized(str(tmp_path)) == "HloModule \ufffd"
    assert read_stages(str(tmp_path)) == {"hlo-spmd": b"HloModule m"}
