"""Facts of calls that are captured in the process of the tests, as JAX, NumPy and MLIR have them of the same calls."""

from __future__ import annotations

import itertools
import re
import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import UsageError
from shardscope.inspector.capture.worker import modules
from shardscope.inspector.capture.worker.probes import live

from .conftest import Captured
from .test_in_this_process import line_with, on


@pytest.fixture
def mesh(devices: list[Any]) -> Mesh:
    """Over the devices in another order."""
    kinds = (AxisType.Auto, AxisType.Explicit)
    return Mesh(np.array(devices)[[0, 1, 2, 3, 6, 7, 4, 5]].reshape(4, 2), ("x", "y"), axis_types=kinds)


@pytest.fixture
def flat(devices: list[Any]) -> Mesh:
    return Mesh(np.array(devices), ("x",), axis_types=(AxisType.Auto,))


def said(capture: Capture) -> list[str]:
    return [each.text for each in capture.messages if "partitioner" not in each.text]


def test_arguments_results_and_what_runs(flat: Mesh, recorded: Captured) -> None:
    """Names, types, shardings as requested and as compiled, donations, figures and digests of results, bytes."""

    rows = (None, NamedSharding(flat, P("x")))

    @partial(jax.jit, donate_argnames=("state",), static_argnames=("scale",), out_shardings=rows)
    def fn(state: Any, batch: Any, unused: Any, *, scale: int) -> Any:
        return {"state": state["w"] + batch["x"].sum(0), "same": state["w"] * 0}, batch["x"] * scale

    w = on(flat, np.linspace(-1, 3, 16, dtype=np.float32))
    x = on(flat, np.arange(128, dtype=np.int32).reshape(8, 16), "x")
    capture = recorded(partial(fn, scale=3), {"w": w}, {"x": x}, 2.0)
    assert said(capture) == []
    assert [(each.path, each.type, each.spec, each.donated) for each in capture.arguments] == [
        ("state['w']", "f32[16]", "P()", True),
        ("batch['x']", "i32[8,16]", "P('x')", False),
        ("unused", "f32[]", None, False),
    ]
    assert [(each.path, each.type, each.spec, each.actual) for each in capture.outputs] == [
        ("result[0]['same']", "f32[16]", None, "P()"),
        ("result[0]['state']", "f32[16]", None, "P()"),
        ("result[1]", "i32[8,16]", "P('x')", "P('x')"),
    ]
    assert not w.is_deleted()
    expected = {
        "result[0]['same']": np.zeros(16, np.float32),
        "result[0]['state']": np.asarray(w) + np.asarray(x).sum(0),
        "result[1]": np.asarray(x) * 3,
    }
    assert capture.execution is not None
    assert not capture.execution.seeded_inputs
    for each in capture.execution.outputs:
        value = expected[each.path]
        assert (each.minimum, each.maximum) == pytest.approx((value.min(), value.max()))
        assert each.mean == pytest.approx(value.mean())
        assert each.non_finite == 0
        assert (each.values is None) == (value.size > live.SMALL)
        assert each.projections is not None
        assert each.projections[0] == pytest.approx(np.linalg.norm(value))
    assert capture.memory is not None
    assert capture.memory.arguments in (16 * 4 + 16 * 4, 16 * 4 + 16 * 4 + 4)
    assert (capture.memory.outputs or 0) >= 16 * 4 * 3
    again = recorded(partial(fn, scale=3), {"w": w}, {"x": x}, 2.0, fingerprints=False).execution
    assert again is not None
    assert [each.projections for each in again.outputs] == [None] * 3
    assert again.inputs is None
    value = expected["result[1]"]
    same, other = (recorded(jax.jit(lambda v: v + 0), each).execution for each in (value, value + 1))
    assert same is not None
    assert other is not None
    digests = {each.path: each.digest for each in capture.execution.outputs}
    assert digests["result[1]"] == same.outputs[0].digest != other.outputs[0].digest


def test_meshes_and_devices_of_the_subject(mesh: Mesh, recorded: Captured) -> None:
    """Axes, kinds, and devices in the order of the mesh and of the program."""

    @jax.jit
    def fn(x: Any) -> Any:
        return x * 2

    subject = recorded(fn, on(mesh, np.ones((8, 2)), "x"), live=False).subject
    assert subject is not None
    ids = [device.id for device in mesh.devices.flat]
    (found,) = [each for each in subject.meshes if each.device_ids == tuple(ids)]
    assert [(axis.name, axis.size, axis.type) for axis in found.axes] == [("x", 4, "auto"), ("y", 2, "explicit")]
    assert list(subject.device_assignment) == ids
    assert (subject.function, subject.script, subject.platform) == ("fn", __file__, "cpu")
    assert (subject.jax, subject.device_count, subject.devices) == (jax.__version__, len(jax.devices()), ())


def test_what_a_function_without_a_jit_closes_over(flat: Mesh, recorded: Captured) -> None:
    held = {name: on(flat, np.ones(8, np.float32), "x") for name in "abcd"}

    def fn(x: Any) -> Any:
        return x + held["a"] + held["b"] + held["c"] + held["d"]

    x = on(flat, np.ones(8, np.float32), "x")
    plain = recorded(fn, x, live=False)
    made, closed = said(plain)
    assert made == "fn has no jit of its own; shown as jax.jit of it"
    assert "f32[8] as P('x'), f32[8] as P('x'), f32[8] as P('x') and 1 more" in closed
    assert [each.level for each in plain.messages if each.text == closed] == ["warning"]
    jitted = recorded(jax.jit(fn), x, live=False)
    assert said(jitted) == []
    assert plain.closed_over == ()
    assert [(each.type, each.spec) for each in jitted.closed_over] == [("f32[8]", "P('x')")] * 4
    assert {each.path for each in jitted.closed_over} == {f"held['{name}']" for name in "abcd"}
    assert recorded(jax.jit(lambda x: x + 1), x, live=False).closed_over == ()


def test_other_shardings_that_are_asked_for(flat: Mesh, recorded: Captured) -> None:
    @jax.jit
    def fn(x: Any, w: Any) -> Any:
        return x @ w, x + 1

    given = on(flat, np.ones((8, 16)), "x"), on(flat, np.ones((16, 8)))
    asked = (("x", "P(None, 'x')"), ("w", "P('x')"))
    capture = recorded(fn, *given, shardings=asked, fingerprints=False)
    assert [(each.path, each.spec, each.actual) for each in capture.arguments] == [(*each, each[1]) for each in asked]
    named = jax.jit(lambda x: x * 2, in_shardings=NamedSharding(flat, P("x")), out_shardings=NamedSharding(flat, P()))
    capture = recorded(named, np.ones(8), shardings=(("result", "P('x')"),))
    assert [each.actual for each in (*capture.arguments, *capture.outputs)] == ["P('x')", "P('x')"]
    assert capture.execution is not None
    assert capture.execution.outputs[0].spec == "P('x')"
    with pytest.raises(UsageError, match="no argument has a mesh"):
        recorded(fn, np.ones((8, 16)), np.ones((16, 8)), shardings=asked)


def test_equations_that_are_probed_and_those_that_there_are_not(flat: Mesh, recorded: Captured) -> None:
    @jax.jit
    @partial(jax.shard_map, mesh=flat, in_specs=P("x"), out_specs=P("x"))
    def fn(x: Any) -> Any:
        return jnp.sin(x) * 2

    x = on(flat, np.arange(8, dtype=np.float32), "x")
    every = [each for each in recorded(fn, x, probe="all").probes if each.when == "after"]
    sine = every[0].path[-1]
    (chosen,) = [each for each in recorded(fn, x, probe=f" {sine}").probes if each.when == "after"]
    assert chosen.path == every[0].path
    assert [shard.mean for shard in chosen.shards] == pytest.approx(np.sin(np.arange(8)))
    assert [each for each in recorded(fn, x, probe="none").probes if each.when == "after"] == []
    with pytest.raises(UsageError, match=r"no equation 0\.77"):
        recorded(fn, x, probe=f"{sine},0.77")


@pytest.mark.filterwarnings("default")
def test_a_trace_alone_a_warning_and_too_little_memory(recorded: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    @jax.jit
    def fn(x: Any) -> Any:
        warnings.warn("of the script", UserWarning, stacklevel=1)
        return x * 2

    capture = recorded(fn, np.ones(1 << 20, np.float32), only_trace=True)
    assert [each.name for each in capture.stages] == ["jaxpr"]
    (message,) = capture.messages
    assert (message.text, message.level) == ("UserWarning: of the script", "warning")
    assert message.location == f"{__file__}:{line_with(fn, 'warnings.warn')}"
    for available, runs in (((1 << 24) - 2, False), (1 << 25, True), (None, True)):
        monkeypatch.setattr(live, "available_bytes", lambda available=available: available)
        again = recorded(jax.jit(lambda x: x * 3), np.ones(1 << 20, np.float32))
        assert (again.execution is not None) == runs
        assert any(text.startswith("no live run: it takes 0.0 GB") for text in said(again)) != runs


@pytest.mark.parametrize("step", [0.01, 0.3, 0.9, 5.0])
def test_runs_end_after_a_while(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of the test's: one that every look at it sets ahead."""
    clock = itertools.count(0.0, step)
    monkeypatch.setattr(live, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    function = jax.jit(lambda x: x * 2)
    x = jnp.ones(3)
    inputs = live.Inputs([x], jax.tree.structure(((x,), {})), [False], False)
    _, execution = live.run(function.lower(x).compile(), inputs, ["y"])
    assert all(each == pytest.approx(step) for each in execution.seconds)
    most = 1 + sum(step * (3 + 3 * done) < live.TIMEOUT_S for done in range(1, live.RUNS))
    assert len(execution.seconds) == most
    assert [each.path for each in execution.outputs] == ["y"]


def plain(module: Any) -> str:
    """The text of a module without locations and names of results."""
    return re.sub(r'( \{)?jax.result_info = "[^"]*"\}?', "", str(module.operation.get_asm(enable_debug_info=False)))


def test_what_is_lowered_and_compiled_is_what_jax_lowers_and_compiles(flat: Mesh, recorded: Captured) -> None:
    """Operations have the equations that JAX names in them; nothing of numbers is left in a text."""

    @jax.jit
    def fn(x: Any, w: Any) -> Any:
        hidden = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(flat, P("x")))
        return jax.lax.fori_loop(0, 3, lambda _, h: jnp.sin(h), hidden).sum(), jnp.sort(hidden)

    x, w = on(flat, np.ones((8, 16), np.float32), "x"), on(flat, np.ones((16, 8), np.float32))
    capture = recorded(fn, x, w, live=False)
    assert said(capture) == []
    texts = {each.name: each.source.data for each in capture.stages}
    assert {"jaxpr", "stablehlo", "hlo-spmd", "hlo"} <= set(texts)
    lowered = fn.lower(x, w)
    with modules.context():
        ours = modules.ir.Module.parse(texts["stablehlo"])
        theirs = modules.ir.Module.parse(lowered.as_text().encode())
        assert plain(ours) == plain(theirs)

    def instructions(text: str) -> list[str]:
        return re.findall(r" = \S+ ([\w-]+)\(", text)

    assert instructions(texts["hlo"].decode()) == instructions(lowered.compile().as_text())
    assert not re.search(rb"~(eq|op)\d+", b"".join(texts.values()))
    for name in ("jit(fn)", "tanh", "sin"):
        assert name.encode() in texts["hlo"]
