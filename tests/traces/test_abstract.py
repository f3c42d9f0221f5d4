"""Large arrays that take no memory: the system says how much the process had, JAX what it lowers of the types."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture import file
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.tracing import run_traced
from shardscope.inspector.traces.read import read_trace

HERE = Path(__file__).parent


@pytest.mark.once
def test_nothing_large_is_allocated(tmp_path: Path) -> None:
    options = TraceOptions(match="train_step", target="cpu", abstract=True)
    command = (sys.executable, str(HERE / "large.py"))
    with (tmp_path / "stdout").open("wb") as stdout:
        ended = run_traced(command, tmp_path, options, 8, stdout)
    assert ended.status == 0
    said = json.loads((tmp_path / "stdout").read_text())
    assert said["bytes"] == 2 * (4 << 29)
    assert said["peak"] < said["bytes"] / 4
    assert said["small"] == [0, 2, 4]
    assert said["loss"] == 0.0
    assert said["sharding"] == "('fsdp', 'tp')"
    trace = read_trace(tmp_path, command, ended.status, ended.seconds)
    [step] = [program for program in trace.programs if program.compiled.name == "train_step"]
    assert step.calls == 3
    assert step.collectives
    assert step.path is not None
    stage = file.load(step.path).stage("stablehlo")
    assert stage is not None
    captured = [line.split(" loc(")[0].strip() for line in stage.source.data.decode().splitlines()]
    operations = [line.strip() for line in said["lowered"].splitlines() if " = " in line and "func" not in line]
    assert [line for line in captured if line in set(operations)] == operations
    [message] = [message.text for process in trace.processes for message in process.messages]
    assert "were not executed" in message
