"""Derived shardings of arguments and outputs against those that JAX reads from the compiled program."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.capture.tags import tagged, untagged
from shardscope.inspector.pipeline import inspect
from shardscope.parsers.source import Source

from .propagating import propagated

PROGRAMS = Path(__file__).parents[2] / "capture" / "programs" / "propagated.py"


def last(function: str) -> Capture:
    *_, final = capture(Request(f"{PROGRAMS}:{function}", live=False))
    assert final.failure is None, final.failure
    return final


def contradictions(found: Capture) -> list[str]:
    return [placed.message.text for placed in inspect(found).messages if placed.message.text.startswith("internal")]


@pytest.mark.parametrize("function", ["sharded", "mapped", "looped", "branches", "special"])
def test_no_contradiction(function: str) -> None:
    found = last(function)
    assert any(value.actual for value in (*found.arguments, *found.outputs))
    assert contradictions(found) == []


def test_a_contradiction_is_an_internal_error() -> None:
    found = last("sharded")
    (output,) = found.outputs
    assert output.actual == "P('x', 'y')"
    # The same placement in another spelling is none; another order of the axes is one.
    for other, expected in (("P(('x',), ('y',))", 0), ("P('y', 'x')", 1), ("P()", 1)):
        changed = replace(found, outputs=(replace(output, actual=other),))
        said = contradictions(changed)
        assert len(said) == expected
        assert all(other in text and "P('x', 'y')" in text and "result" in text for text in said)


SIMPLIFIED = """
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


def centred(v):
    return (v - v.sum(axis=1, keepdims=True)).reshape(256).reshape(16, 16)


inputs = (jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=NamedSharding(mesh, P("y", "x"))),)
"""


def test_what_xla_simplifies_before_it_propagates(tmp_path: Path) -> None:
    """Between the reshapes, which XLA removes, the second dimension's axis would be lost."""
    script = tmp_path / "program.py"
    script.write_text(SIMPLIFIED)
    *_, found = capture(Request(f"{script}:centred", live=False))
    report = inspect(found)
    (output,) = (value for value in report.shardings if value.role == "output")
    assert output.spec == found.outputs[0].actual == "P('y', 'x')"
    assert contradictions(found) == []
    assert not any(placed.message.phase == "propagation" for placed in report.messages)
    # A propagation of the StableHLO ends otherwise; what goes into the partitioner says so.
    stablehlo = found.stage("stablehlo")
    assert stablehlo is not None
    text, numbers = untagged(propagated(tmp_path, tagged(stablehlo.source.data, stablehlo.tags)))
    sdy = Stage("sdy", "mlir", Source("sdy", text), tags=numbers)
    other = replace(found, stages=tuple(sdy if stage.name == "sdy" else stage for stage in found.stages))
    report = inspect(other)
    (output,) = (value for value in report.shardings if value.role == "output")
    assert output.spec == "P('y', 'x')"
    assert any("XLA simplifies" in placed.message.text for placed in report.messages)
    # Without what XLA says the propagation stands for itself.
    alone = replace(other, stages=tuple(stage for stage in other.stages if not stage.name.startswith("hlo")))
    (output,) = (value for value in inspect(alone).shardings if value.role == "output")
    assert output.spec == "P('y', None)"
    assert len(contradictions(alone)) == 1


FOR_A_TARGET = """
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


@jax.jit
def step(unused, a, b, free):
    asked = jax.lax.with_sharding_constraint(free, NamedSharding(mesh, P("y", "x")))
    return a @ b, {"sum": jnp.sin(a).sum(0), "asked": asked}


def given(*spec):
    return jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


inputs = (given(), given(("y", "x")), given(None, "y"), jax.ShapeDtypeStruct((64, 64), jnp.float32))
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_a_target_has_the_actual_shardings_that_jax_says_here(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(FOR_A_TARGET)
    here, there = (list(capture(Request(f"{script}:step", live=False, target=target)))[-1] for target in TARGETS)
    assert there.failure is None, there.failure
    for known, found in ((here.arguments, there.arguments), (here.outputs, there.outputs)):
        for one, other in zip(known, found, strict=True):
            assert (one.actual is None) == (other.actual is None) == (one.path == "unused")
            if one.actual is not None:
                assert _entries(one.actual) == _entries(other.actual), one.path
    assert contradictions(there) == []


TARGETS = ("cpu", "tpu:v5p:2x2x2")


def _entries(spec: str | None) -> tuple[object, ...]:
    """The entries of a printed spec; those at the end that are None need not be written."""
    entries = list(eval(spec or "", {"P": lambda *entries: entries}))
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)
