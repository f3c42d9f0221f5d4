"""How axes came into values: each step uses the one before, as JAX's own jaxpr has it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from shardscope.inspector.ir.jaxpr_text import EquationPlace, JaxprText
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.why_lines import entry_lines
from shardscope.inspector.report import AxisEntry, VariableVariance
from shardscope.inspector.variance.entry_chain import entry_chains

from tests.conftest import SampleCapture


def reaches(
    text: JaxprText,
    place: EquationPlace,
    name: str,
    entry: AxisEntry,
    having: dict[tuple[int, str], VariableVariance],
) -> bool:
    """Return whether the input of the shard_map comes to a value by equations of one body that all have the axis."""
    (body,) = {body for each in text.equations if each.id == entry.equation for _, body in each.equation.bodies}
    if place.jaxpr != body or entry.input is None:
        return False
    jaxpr = text.program.jaxprs[body]
    known = {jaxpr.inputs[entry.input].name}
    for equation in jaxpr.equations:
        if known & {*equation.inputs}:
            values = (having.get((body, out.name)) for out in equation.outputs)
            known |= {v.value for v in values if v and entry.axis in (*v.varying, *v.unreduced, *v.reduced, *v.hidden)}
    return name in known


@pytest.mark.parametrize("function", ["fsdp_tp:grad", "pipeline:loss"])
def test_each_step_uses_the_one_before(sample: SampleCapture, function: str) -> None:
    report = inspect(sample(function))
    text = report.program.jaxpr
    assert text is not None
    places = {place.id: place for place in text.equations}
    whole = by_input = 0
    having = {(places[each.equation].jaxpr, each.value): each for each in report.variance}
    for value in report.variance:
        for entry in value.entered:
            way = entry_chains(text).of(value, entry)
            assert way[-1] is value
            assert all(entry.axis in (*each.varying, *each.unreduced, *each.reduced, *each.hidden) for each in way)
            for before, after in pairwise(way):
                one, other = places[before.equation], places[after.equation]
                if one.jaxpr == other.jaxpr:
                    assert before.value in other.equation.inputs
            first = places[way[0].equation]
            body = dict(places[entry.equation].equation.bodies).values()
            enters = first.id == entry.equation or (
                first.jaxpr in body
                and entry.input is not None
                and text.program.jaxprs[first.jaxpr].inputs[entry.input].name in first.equation.inputs
            )
            whole += enters
            if entry.input is not None and reaches(text, places[value.equation], value.value, entry, having):
                by_input += 1
                assert enters
            if len(way) > 1:
                lines = list(entry_lines(report, value.equation))
                assert any(f"→ {way[0].value} = {way[0].primitive}" in line for line in lines)
    assert whole > len(report.variance) / 2
    assert by_input
