"""How axes came into values: each step uses the one before, as JAX's own jaxpr has it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.variance_lines import entry_lines
from shardscope.inspector.variance.entry_chain import entry_chains

from tests.conftest import SampleCapture


@pytest.mark.parametrize("function", ["fsdp_tp:grad", "pipeline:loss"])
def test_each_step_uses_the_one_before(sample: SampleCapture, function: str) -> None:
    report = inspect(sample(function))
    text = report.program.jaxpr
    assert text is not None
    places = {place.id: place for place in text.equations}
    whole = 0
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
            if len(way) > 1:
                lines = list(entry_lines(report, value.equation))
                assert any(f"→ {way[0].value} = {way[0].primitive}" in line for line in lines)
    assert whole > len(report.variance) / 2
