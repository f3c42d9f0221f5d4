"""Scripts that run as they are: what is recorded of them, and that it is what the same function gives by hand."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import msgspec
import pytest
from jax._src import compilation_cache, monitoring
from shardscope.inspector.capture import file
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.tracing import traced_environment
from shardscope.inspector.capture.worker.tracing import programs
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json.trace import trace_json_schema, trace_to_json
from shardscope.inspector.traces.read import read_trace

from .conftest import HERE, LAYERS, Recorded

FILE = re.compile(r'(?:^\d+ |source_file=)"(/[^"]*)"', re.MULTILINE)


def test_the_script_runs_as_it_is(training: Recorded) -> None:
    assert training.trace.status == 0
    assert len(training.stdout.splitlines()) == 1
    [process] = training.trace.processes
    assert process.started.argv[1:] == (str(HERE / "training.py"), "--layers", "3")
    assert process.seconds is not None
    assert not process.messages
    assert process.backend is not None
    assert process.backend.device_count == 8


def test_calls_are_counted(training: Recorded) -> None:
    calls = {name: program.calls for name, program in training.programs.items() if not program.compiled.internal}
    assert calls == {
        "train_step": 4,
        "scaled": 2,
        "scaled.2": 1,
        "<lambda>": 3,
        "<lambda>.2": 1,
        "<lambda>.3": 1,
        "<lambda>.4": 2,
    }


def test_collectives_are_those_of_the_compiled_text(training: Recorded) -> None:
    step = training.programs["train_step"]
    assert step.collectives is not None
    counted = json.loads(training.stdout)
    assert {kind: step.collectives.get(kind, 0) for kind in counted} == counted
    assert training.trace.programs[0].compiled.name == "train_step"
    assert step.total_wire == (step.calls or 0) * (step.wire_bytes or 0) > 0


def test_where_a_program_comes_from(training: Recorded) -> None:
    lines = (HERE / "training.py").read_text().splitlines()
    compiled = training.programs["train_step"].compiled
    assert compiled.source is not None
    assert compiled.call is not None
    assert "def train_step" in "".join(lines[compiled.source.line - 1 : compiled.source.line + 1])
    assert lines[compiled.call.line - 1].strip() == "params = train_step(params, x)"
    assert compiled.context == ("fsdp=4", "tp=2")
    assert [(each.path, each.type, each.spec, each.donated) for each in compiled.arguments] == [
        *((f"params[{number}]", "f32[16,16]", "P('fsdp', 'tp')", True) for number in range(LAYERS)),
        ("x", "f32[8,16]", "P('fsdp')", False),
    ]


def test_no_program_has_our_frames(training: Recorded) -> None:
    """What is outside of jit is traced when it is lowered, which our own functions are called for."""
    paths = [program.path for program in training.trace.programs if program.path and program.collectives]
    stages = [stage for path in paths if (stage := file.load(path).stage("hlo")) is not None]
    files = {name for each in stages for name in FILE.findall(each.source.text())}
    assert {name for name in files if "site-packages" not in name} == {str(HERE / "training.py")}


def test_what_was_compiled_more_than_once(training: Recorded) -> None:
    document = json.loads(trace_to_json(training.trace))
    reasons = {each["function"]: each["reasons"] for each in document["retraced"]}
    assert reasons["scaled"] == [["static power=2 → power=3"]]
    assert reasons["<lambda>"] == [["bound to number=0 → number=1"]]


def test_the_capture_is_that_of_the_function_by_hand(training: Recorded) -> None:
    traced = file.load(training.programs["train_step"].path or "")
    by_hand = last_capture(Request(f"{HERE / 'by_hand.py'}:train_step", context="context", live=False, devices=8))
    assert traced.complete, traced.failure
    assert by_hand.complete, by_hand.failure
    assert traced.arguments == by_hand.arguments
    assert traced.outputs == by_hand.outputs
    assert traced.memory == by_hand.memory
    for name in ("stablehlo", "hlo"):
        assert _without_places(traced, name) == _without_places(by_hand, name)
    assert bool(traced.equations) == bool(by_hand.equations)
    found, expected = (_collectives(capture) for capture in (traced, by_hand))
    assert found == expected
    assert found


def _without_places(capture: Capture, name: str) -> list[str]:
    """The lines of a stage without what says where they come from."""
    stage = capture.stage(name)
    assert stage is not None
    text = re.sub(r"loc\(#?[^()]*(?:\([^()]*\))*[^()]*\)|, metadata=\{[^}]*\}", "", stage.source.data.decode())
    lines = (
        line for line in text.splitlines() if not re.match(r"#loc|#own|HloModule|\d+ |FileNames|FunctionNames", line)
    )
    return [line for line in lines if re.match(r"\s*(%|ROOT|func|stablehlo|sdy)", line)]


def _collectives(capture: Capture) -> Counter[tuple[object, ...]]:
    report = inspect(capture)
    return Counter(
        (each.stage, each.kind, each.axes, each.wire_bytes, each.executions, each.origin, each.direction)
        for each in report.collectives
    )


@pytest.mark.skipif(msgspec.__version__ < "0.20", reason="older msgspec writes its schemas otherwise")
def test_the_document_keeps_to_its_schema(training: Recorded) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((HERE.parents[1] / "docs" / "trace.schema.json").read_text())
    assert schema == trace_json_schema()
    jsonschema.Draft202012Validator(schema).validate(json.loads(trace_to_json(training.trace)))


STOPPED = """
import atexit, os, signal, sys
import jax, jax.numpy as jnp
atexit.register(print, "ended")
@jax.jit
def step(x):
    return x * 2
x = jnp.ones(4)
for number in range(100):
    x = step(x)
    print(number)
    if number == 5 and "kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5 and "raise" in sys.argv:
        raise ValueError("wrong")
"""


def _stopped(tmp_path: Path, *argv: str, **options: object) -> Recorded:
    script = tmp_path / "stopped.py"
    script.write_text(STOPPED)
    return Recorded(tmp_path, str(script), *argv, options=TraceOptions(match="step", target="cpu", **options))  # type: ignore[arg-type]


def test_a_script_ends_after_some_steps(tmp_path: Path) -> None:
    recorded = _stopped(tmp_path, steps=3)
    assert recorded.trace.status == 0
    assert recorded.stdout.split() == ["0", "1", "ended"]
    assert recorded.programs["step"].calls == 3


@pytest.mark.once
def test_a_script_ends_before_the_first_step(tmp_path: Path) -> None:
    recorded = _stopped(tmp_path, run=False)
    assert recorded.stdout.split() == ["ended"]
    assert recorded.programs["step"].calls == 0
    assert file.load(recorded.programs["step"].path or "").complete


MAPPED = """
from functools import partial
import jax, jax.numpy as jnp

@partial(jax.pmap, axis_name="batch", static_broadcasted_argnums=2)
def train_step(params, x, rate):
    gradient = jax.grad(lambda params: jnp.mean((x @ params["w"] + params["b"]) ** 2))(params)
    return jax.tree.map(lambda w, d: w - rate * jax.lax.pmean(d, "batch"), params, gradient)

count = jax.local_device_count()
train_step({"w": jnp.ones((count, 4, 4)), "b": jnp.ones((count, 4))}, jnp.ones((count, 2, 4)), 0.1)

class State:
    def __init__(self, weights, count):
        self.weights, self.count = weights, count

jax.tree_util.register_pytree_with_keys(
    State, lambda s: ((("weights", s.weights), ("count", s.count)), None), lambda _, parts: State(*parts)
)

@jax.jit
def bare(state, x):
    return State(state.weights["w"] @ x, state.count)

bare(State({"w": jnp.ones((2, 2))}, 1), jnp.ones((2, 2)))
jnp.dot(jnp.ones((3, 3)), jnp.ones((3, 3)))
"""


@pytest.mark.once
@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 does not say which function it maps")
def test_a_mapped_function_has_its_own_name(tmp_path: Path) -> None:
    """JAX jits one of its own around it."""
    script = tmp_path / "mapped.py"
    script.write_text(MAPPED)
    recorded = Recorded(tmp_path, str(script), options=TraceOptions(match="dot*"))
    compiled = recorded.programs["train_step"].compiled
    assert compiled.source is not None
    assert (compiled.source.file, compiled.source.line) == (str(script), 5)
    assert [argument.path for argument in compiled.arguments] == ["params['b']", "params['w']", "x"]
    arguments = recorded.programs["bare"].compiled.arguments
    assert [argument.path for argument in arguments] == ["state.weights['w']", "state.count", "x"]
    # What JAX's own function does for a line of the script is shown as the script's.
    [path] = [program.path for name, program in recorded.programs.items() if name.startswith("dot") and program.path]
    subject = file.load(path).subject
    assert subject is not None
    assert subject.script == str(script)


@pytest.mark.once
def test_what_was_recorded_outlives_the_process(tmp_path: Path) -> None:
    recorded = _stopped(tmp_path, "kill")
    assert recorded.trace.status == -signal.SIGKILL
    assert recorded.programs["step"].calls == 6
    assert recorded.trace.processes[0].seconds is None


def test_other_pythons_are_left_alone(tmp_path: Path) -> None:
    """The user's own `sitecustomize` runs, and neither `sys.path` nor a process without JAX shows anything of ours."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.mine = 1")
    code = "import sys; print(mine, sys.modules['sitecustomize'].__file__, sys.path, 'jax' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(own)}
    bare, traced = (
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        for env in (environment, traced_environment(environment, tmp_path / "trace", TraceOptions()))
    )
    assert (traced.stdout, traced.stderr) == (bare.stdout, bare.stderr)
    assert [path.name for path in (tmp_path / "trace").iterdir()] == [".python"]


CELL = "@jax.jit\ndef within(x): return x * 2\n"

INSIDE = f"""
import jax, jax.numpy as jnp, linecache, shardscope
x = jnp.ones(4)
linecache.cache["/none/cell.py"] = ({len(CELL)}, None, {CELL.splitlines(keepends=True)}, "/none/cell.py")
@jax.jit
def before(x): return x + 1
exec(compile({CELL!r}, "/none/cell.py", "exec"))
before(x)
with shardscope.record("out"):
    for _ in range(3):
        before(within(x))
within(x)
jax.jit(lambda x: x - 1)(x)
"""


@pytest.mark.once
@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="known: with JAX 0.7 a plugin sees one call only")
def test_from_inside_and_by_the_environment(tmp_path: Path) -> None:
    """What JAX loads as a plugin records the whole process, `record` what is compiled within it.

    The cell of a notebook is in no file, only where Python keeps the lines of its traceback.
    """
    script = tmp_path / "inside.py"
    script.write_text(f"import shardscope.jax_plugin as plugin\nplugin.initialize()\n{INSIDE}")
    environment = {**os.environ, "SHARDSCOPE_RECORD": str(tmp_path / "all")}
    subprocess.run([sys.executable, script], env=environment, cwd=tmp_path, check=True)
    traces = {name: read_trace(tmp_path / name) for name in ("out", "all")}
    found = {
        name: {each.compiled.name: each.calls for each in trace.programs if not each.is_helper}
        for name, trace in traces.items()
    }
    assert found["out"] == {"within": 3}
    assert found["all"] == {"before": 4, "within": 4, "<lambda>": 1}


def test_programs_from_the_persistent_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX says so of the second of two that are the same."""
    monkeypatch.setattr(programs, "is_listening", False)
    hits: list[int] = []
    monkeypatch.setattr(monitoring, "_event_listeners", [])
    options = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_enable_compilation_cache": True,
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    held = {name: getattr(jax.config, name) for name in options}
    try:
        compilation_cache.reset_cache()
        for name, value in options.items():
            jax.config.update(name, value)
        programs.listen(lambda: hits.append(1))
        for expected in (0, 1, 2):
            jax.jit(lambda x: x * 3).lower(1.0).compile()
            assert len(hits) == expected
    finally:
        for name, value in held.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
