"""Programs that are recorded in the process of the tests, which knows their calls, arguments and reasons."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture import file
from shardscope.inspector.capture.here import recording
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.worker.tracing.recording import EXIT_TIMEOUT_S
from shardscope.inspector.capture.worker.tracing.start import begin
from shardscope.inspector.render.json.trace import trace_to_json
from shardscope.inspector.report.traces import Program, Trace
from shardscope.inspector.traces.read import read_trace

from .test_in_this_process import line_with, on


@pytest.fixture
def mesh(devices: list[Any]) -> Mesh:
    return Mesh(np.array(devices).reshape(4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def read(folder: Path) -> tuple[Trace, dict[str, Program]]:
    trace = read_trace(folder, ("script.py",), 0, 1.0)
    (process,) = trace.processes
    assert [each.text for each in process.messages] == []
    return trace, {each.compiled.id: each for each in trace.programs}


def test_calls_arguments_and_reasons(mesh: Mesh, tmp_path: Path) -> None:
    @partial(jax.jit, static_argnames=("power",), donate_argnums=1)
    def scaled(x: Any, state: Any, power: int) -> Any:
        return state + x.sum() ** power

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P())
    def summed(x: Any) -> Any:
        return lax.psum(x.sum(), "x")

    def script() -> None:
        x, state = on(mesh, np.ones((8, 4), np.float32), "x"), on(mesh, np.zeros((), np.float32))
        for _ in range(5):
            state = scaled(x, state, power=2)
        state = scaled(x[:4], state, power=2)
        state = scaled(x[:4], state, power=3)
        for _ in range(3):
            summed(x)  # summed
        for _ in range(4):
            jax.device_put(np.ones((16, 4), np.float32), NamedSharding(mesh, P("x", "y")))  # put
        summed.lower(x[:4]).compile()(x[:4])

    with recording(str(tmp_path)):
        script()
    script()
    trace, programs = read(tmp_path)
    users = {name: each for name, each in programs.items() if not each.compiled.internal}
    assert {name: each.calls for name, each in users.items()} == {
        "scaled": 5, "scaled.2": 1, "scaled.3": 1, "summed": 3, "summed.2": 1,
    }  # fmt: skip
    for name, shape, power in (("scaled", "[8,4]", 2), ("scaled.2", "[4,4]", 2), ("scaled.3", "[4,4]", 3)):
        compiled = users[name].compiled
        x, state = compiled.arguments
        assert (x.path, x.type, x.donated) == ("x", f"f32{shape}", False)
        assert (state.path, state.type, state.donated) == ("state", "f32[]", True)
        assert (compiled.static, compiled.keywords) == ((f"power={power}",), ("power",))
        assert compiled.devices == 8
        assert compiled.source is not None
        assert compiled.source.file == __file__
        assert not compiled.transformed
    assert users["scaled"].compiled.arguments[0].spec == "P('x')"
    assert users["scaled"].compiled.function == users["scaled.2"].compiled.function
    assert users["scaled"].compiled.function != users["summed"].compiled.function
    call = users["summed"].compiled.call
    assert call is not None
    assert call.line == line_with(script, "# summed")
    assert users["summed"].collectives == {"all-reduce": 1}
    assert users["summed"].total_wire == 3 * (users["summed"].wire_bytes or 0) > 0
    (retraced,) = [each for each in json.loads(trace_to_json(trace))["retraced"] if each["function"] == "scaled"]
    assert [["[8,4]" in text and "[4,4]" in text for text in each] for each in retraced["reasons"][:1]] == [[True]]
    assert retraced["reasons"][1] == ["static power=2 → power=3"]
    (process,) = trace.processes
    assert process.backend is not None
    assert (process.backend.jax, process.backend.device_count) == (jax.__version__, len(jax.devices()))
    (put,) = [each for each in process.transfers if each.call and each.call.line == line_with(script, "# put")]
    assert (put.source, put.calls, put.most, put.received) == ("host", 4, 16 * 4 * 4 // 8, 16 * 4 * 4)
    assert process.seconds is not None
    assert process.started.argv == tuple(sys.orig_argv)


def test_a_program_that_matches_is_captured_and_ends_the_script(
    mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many calls; the others count, and are not captured in full."""

    @jax.jit
    def step(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w).sum()

    @jax.jit
    def other(x: Any) -> Any:
        return x * 2

    x, w = on(mesh, np.ones((8, 16), np.float32), "x"), on(mesh, np.ones((16, 8), np.float32), None, "y")
    timers: list[Any] = []
    timer = SimpleNamespace(start=lambda: timers.append("started"))
    monkeypatch.setattr(threading, "Timer", lambda *given: (timers.append(given), timer)[1])
    made = []
    recorder = begin(str(tmp_path), TraceOptions(match="st?p", steps=3))
    try:
        other(x)
        with pytest.raises(SystemExit):
            made.extend(step(x, w) for _ in range(10))
    finally:
        recorder.close()
    assert timers == [(EXIT_TIMEOUT_S, os._exit, (0,)), "started"]
    assert timer.daemon
    trace, programs = read(tmp_path)
    assert (programs["step"].calls, programs["other"].calls, len(made)) == (3, 1, 2)
    assert trace.processes[0].stopped == "3 calls were made"
    assert programs["step"].compiled.captured == "full"
    assert programs["other"].compiled.captured == "compiled"
    capture = file.load(programs["step"].path or "")
    assert capture.failure is None
    assert {"jaxpr", "stablehlo", "hlo-spmd", "hlo"} <= {each.name for each in capture.stages}
    assert [(each.path, each.type, each.spec) for each in capture.arguments] == [
        ("x", "f32[8,16]", "P('x')"),
        ("w", "f32[16,8]", "P(None, 'y')"),
    ]
    assert [(each.path, each.type) for each in capture.outputs] == [("result", "f32[]")]
    alone = file.load(programs["other"].path or "")
    assert [each.name for each in alone.stages] == ["hlo"]
    assert [(each.path, each.actual) for each in alone.arguments] == [("x", "P('x')")]
    assert alone.memory is not None
    assert alone.memory.arguments == 8 * 16 * 4 // 4


def made_again(number: int) -> Callable[[Any], Any]:
    return jax.jit(lambda x: x * number)


def test_programs_that_fail_are_cached_or_are_compiled_again(tmp_path: Path) -> None:
    def broken(x: Any) -> Any:
        raise TypeError("of the script")

    with recording(str(tmp_path)):
        for number in (1, 1, 2):
            made_again(number)(1.0)
        jax.clear_caches()
        made_again(2)(1.0)
        with pytest.raises(TypeError):
            jax.jit(broken)(1.0)
        jnp.cumsum(np.arange(5.0))
        jax.grad(jax.jit(jnp.sin))(1.0)
    trace, programs = read(tmp_path)
    lambdas = [each for each in trace.programs if each.compiled.name == "<lambda>"]
    lambdas.sort(key=lambda each: each.compiled.number)
    assert [each.compiled.bound for each in lambdas] == [(f"number={number}",) for number in (1, 1, 2, 2)]
    assert [each.compiled.cleared for each in lambdas] == [0, 0, 0, 1]
    assert len({each.compiled.function for each in lambdas}) == 4
    assert [each.calls for each in lambdas] == [1] * 4
    assert "broken" not in programs
    assert all(each.compiled.internal for name, each in programs.items() if "cumsum" in name)
