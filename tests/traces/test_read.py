"""Programs of a trace, read from the files that a process leaves: counters, captures, and what is missing of them."""

from __future__ import annotations

import os
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture import file
from shardscope.inspector.capture.model import Capture, Failure, Stage
from shardscope.inspector.capture.protocol.trace import CALLS_FILE, CompiledProgram, capture_file
from shardscope.inspector.report.traces import Program
from shardscope.inspector.traces.read import program_of, ranked
from shardscope.parsers.source import Source

COMPILED = CompiledProgram(2, "step", "step", captured="compiled")
HLO = """HloModule m, is_scheduled=true, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}}

%more (c: f32[8]) -> pred[] {{
  %c = f32[8] parameter(0)
  ROOT %p = pred[] custom-call(%c), custom_call_target="more"
}}

%body (v: f32[8]) -> f32[8] {{
  %v = f32[8] parameter(0)
  ROOT %i = f32[8] all-reduce(%v), channel_id=2, replica_groups={{{{0,1,2,3}}}}, to_apply=%sum
}}

ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8] parameter(0)
  %r = f32[8] all-reduce(%p), channel_id=1, replica_groups={{{{0,1,2,3}}}}, to_apply=%sum
  ROOT %w = f32[8] while(%r), condition=%more, body=%body{trips}
}}
"""
ONCE = 2 * 3 * 8 * 4 // 4
"""Bytes that each of four devices sends of 8 floats, in a ring: twice three quarters of them."""


def known(trips: int | None) -> Capture:
    text = HLO.format(trips="" if trips is None else f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}')
    return Capture(stages=(Stage("hlo", "hlo", Source("hlo", text.encode())),), complete=True)


def read(folder: Path, capture: Capture | None, compiled: CompiledProgram = COMPILED, *inexact: int) -> Program:
    if capture is not None:
        file.save(capture, folder / capture_file(compiled.number))
    return program_of(0, compiled, folder, set(inexact))


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_what_a_program_sends(trips: int, tmp_path: Path) -> None:
    found = read(tmp_path, known(trips))
    assert (found.wire_bytes, found.collectives, found.reason) == ((1 + trips) * ONCE, {"all-reduce": 2}, "")
    assert found.path == tmp_path / capture_file(2)


def test_what_is_not_known(tmp_path: Path) -> None:
    often = read(tmp_path, known(None))
    assert (often.wire_bytes, often.collectives) == (None, {"all-reduce": 2})
    assert often.reason == "the executions of a collective are not known"
    raised = Failure("function", "it raised", "compile")
    for failure, own, reason in (
        (None, None, "it was not compiled to the end"),
        (raised, None, "it raised"),
        (raised, "no memory", "no memory"),
    ):
        found = read(tmp_path, Capture(failure=failure), replace(COMPILED, failure=own))
        assert (found.wire_bytes, found.collectives, found.reason) == (None, None, reason)
        assert found.path == tmp_path / capture_file(2)


def test_what_was_not_captured(tmp_path: Path) -> None:
    """Of JAX's own programs the text is kept where there may be a collective in it."""
    idle, failed = (read(tmp_path, None, replace(COMPILED, captured="", failure=why)) for why in (None, "no memory"))
    assert (idle.wire_bytes, idle.collectives, idle.reason, idle.path) == (0, {}, "", None)
    assert (failed.wire_bytes, failed.collectives, failed.reason, failed.path) == (None, None, "no memory", None)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / capture_file(2)
    missing = read(tmp_path, None)
    path.write_bytes(b"no capture")
    damaged = read(tmp_path, None)
    path.unlink()
    os.mkfifo(path)
    pipe = read(tmp_path, None)
    for found in (missing, damaged, pipe):
        assert (found.wire_bytes, found.collectives, found.path) == (None, None, None)
        assert path.name in found.reason
    assert pipe.reason == f"{path.name} is not a regular file"


def test_calls(tmp_path: Path) -> None:
    """Counters of eight bytes, one for each program."""
    own = replace(COMPILED, captured="", internal=True)
    assert read(tmp_path, known(1)).calls is None
    (tmp_path / CALLS_FILE).write_bytes(array("Q", [7, 8, 9]).tobytes())
    assert read(tmp_path, known(1)).calls == 9
    assert read(tmp_path, known(1), COMPILED, 1, 3).calls == 9
    assert read(tmp_path, known(1), COMPILED, 2).calls is None, "it is called where nobody counts"
    assert read(tmp_path, None, own).calls is None, "nobody counts those"
    assert read(tmp_path, known(1), replace(own, captured="compiled")).calls == 9
    assert read(tmp_path, None, replace(own, internal=False)).calls == 9
    assert read(tmp_path, None, replace(own, internal=False, number=3)).calls is None
    (tmp_path / CALLS_FILE).write_bytes(array("Q", [7, 8, 9]).tobytes()[:-1])
    assert read(tmp_path, known(1)).calls is None


def test_the_order_of_programs(tmp_path: Path) -> None:
    """By the bytes of all calls; of those that are alike, what takes longest to compile; JAX's own last."""
    plain = read(tmp_path, None, replace(COMPILED, captured=""))
    ordered = [
        replace(plain, wire_bytes=8, calls=10),
        replace(plain, wire_bytes=70, calls=None),
        replace(plain, wire_bytes=8, calls=8),
        replace(plain, wire_bytes=None, calls=3, compiled=replace(plain.compiled, compile_seconds=2)),
        replace(plain, wire_bytes=0, calls=3, compiled=replace(plain.compiled, compile_seconds=1)),
        replace(plain, wire_bytes=900, calls=0, compiled=replace(plain.compiled, compile_seconds=0.5)),
        replace(plain, wire_bytes=0, calls=9, compiled=replace(plain.compiled, internal=True, compile_seconds=3)),
    ]
    assert list(ranked(ordered[::-1])) == ordered
