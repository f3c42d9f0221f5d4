"""Inferred variance is the one that JAX's types state, and says what differs where they do not look."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.ir.jaxpr_text import JaxprText
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import VariableVariance
from shardscope.inspector.variance.held import axes_of
from shardscope.inspector.variance.inference import infer

from ..conftest import SAMPLE_FUNCTIONS, SampleCapture


def jaxpr_of(capture: Capture) -> JaxprText:
    text = Program(capture).jaxpr
    assert text is not None
    return text


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_inferred_types_are_those_of_jax(function: str, sample: SampleCapture) -> None:
    text = jaxpr_of(sample(function))
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
    assert [(entry.axis, entry.by) for entry in found["mul"].entered] == [("i", "in_specs[0]")]
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


@pytest.mark.parametrize("function", [f for f in SAMPLE_FUNCTIONS if not f.startswith("unsound_invariance:faulty")])
def test_nothing_is_hidden_in_sound_programs(function: str, sample: SampleCapture) -> None:
    assert not [v for v in inspect(sample(function)).variance if v.hidden]


def test_where_axes_enter_and_leave(sample: SampleCapture) -> None:
    found = variance(sample("pipeline:loss"))
    assert [(e.axis, e.by) for e in found["axis_index"].entered] == [("stage", "axis_index")]
    reduction = found["psum_invariant"]
    assert reduction.left == ("stage",)
    assert reduction.varying == ()
    assert reduction.source.frame is not None
