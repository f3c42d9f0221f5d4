"""Inferred variance is the one that JAX's types state, and says what differs where they do not look."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.ir.jaxpr_text import JaxprText
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import VariableVariance
from shardscope.inspector.variance.entry_chain import entry_chains
from shardscope.inspector.variance.held import axes_of
from shardscope.inspector.variance.inference import infer

from ..conftest import SAMPLE_FUNCTIONS, SampleCapture


def jaxpr_of(capture: Capture) -> JaxprText:
    text = Program(capture).jaxpr
    assert text is not None
    return text


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_inferred_types_are_those_of_jax(function: str, sample: SampleCapture) -> None:
    check_types(jaxpr_of(sample(function)))


LOOPS = """
from functools import partial
import jax
import jax.numpy as jnp
from jax import lax, P

mesh = jax.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(jax.sharding.AxisType.Auto,) * 3)
specs = P("x"), P(None, "y"), P(), P(("x", "z"))

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "y"), P(), P("x"), P(("x", "y")), P("z")))
def loops(a, b, c, d):
    # Constants, carries and slices that differ in what they vary over.
    def step(carry, rows):
        return carry + rows[1].sum(), (rows[0] * 2, rows[1] + 1, a + 1)
    total, (doubled, more, _) = lax.scan(step, c.sum(), (b, c))

    # One constant of the condition, one of the body, and two carries.
    limit = c.max()
    def goes_on(state):
        return state[0] < limit
    def advanced(state):
        return state[0] + 1, state[1] * a
    _, powers = lax.while_loop(goes_on, advanced, (0.0, a))

    first = lax.cond(limit > 1, lambda v, w: v[:, None] + w, lambda v, w: v[:, None] * w, a, b[:1])
    return total, doubled, more, powers, first.ravel(), lax.psum(d, "x")

loops_inputs = jnp.arange(4.0), jnp.ones((3, 4)), jnp.ones((3, 2)), jnp.arange(8.0)
"""


def test_types_in_loops(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LOOPS)
    last = last_capture(Request(f"{tmp_path / 'script.py'}:loops", live=False))
    assert last.complete, last.failure
    check_types(jaxpr_of(last))
    report = inspect(last)
    text = report.program.jaxpr
    assert text is not None
    for value in report.variance:
        for entry in value.entered:
            way = entry_chains(text).of(value, entry)
            assert way[-1] is value
            assert all(entry.axis in each.varying for each in way)
    assert {"scan", "while", "cond"} <= {place.equation.primitive for place in jaxpr_of(last).equations}


def check_types(text: JaxprText) -> None:
    """Compare what is inferred with what JAX prints."""
    inferred = infer(text, "types")
    compared = 0
    for place in text.equations:
        for number, output in enumerate(place.equation.outputs):
            if output.varying is not None:
                value = inferred.results[place.id][number]
                found = tuple(axes_of(value, state) for state in ("varying", "unreduced", "reduced"))
                assert found == (output.varying, output.unreduced, output.reduced), (place.id, place.equation)
                compared += 1
    checked = [e for j in text.program.jaxprs for e in j.equations if e.shard_map and e.shard_map.checked]
    assert bool(compared) == any(text.program.jaxprs[body].equations for e in checked for _, body in e.bodies)


def variance(capture: Capture) -> dict[str, VariableVariance]:
    """The last value of each primitive."""
    return {value.primitive: value for value in inspect(capture).variance}


def test_unchecked(sample: SampleCapture) -> None:
    found = variance(sample("transposes:gather_to_varying_unchecked"))
    assert all(value.inferred for value in found.values())
    assert found["mul"].varying == ("i",)
    assert [(entry.axis, entry.by) for entry in found["mul"].entered] == [("i", "in_specs")]
    shared = variance(sample("transposes:psum_to_invariant_unchecked"))
    assert shared["psum"].varying == ()  # the defensive psum: its operand did not vary either
    assert shared["psum"].left == ()


def test_what_a_type_hides(sample: SampleCapture) -> None:
    (choice,) = [v for v in inspect(sample("unsound_invariance:faulty")).variance if v.hidden]
    assert choice.primitive == "cond"
    assert choice.varying == ()
    assert choice.hidden == ("x",)
    assert [(entry.axis, entry.by) for entry in choice.entered] == [("x", "in_specs[0]")]
    assert not [v for v in inspect(sample("unsound_invariance:repaired")).variance if v.hidden]


@pytest.mark.parametrize(
    "function", [each for each in SAMPLE_FUNCTIONS if each.values[0] != "unsound_invariance:faulty"]
)
def test_nothing_is_hidden_in_sound_programs(function: str, sample: SampleCapture) -> None:
    assert not [v for v in inspect(sample(function)).variance if v.hidden]


def test_where_axes_enter_and_leave(sample: SampleCapture) -> None:
    found = variance(sample("pipeline:loss"))
    assert [(e.axis, e.by) for e in found["axis_index"].entered] == [("stage", "axis_index")]
    reduction = found["psum_invariant"]
    assert reduction.left == ("stage",)
    assert reduction.varying == ()
    assert reduction.source.frame is not None
