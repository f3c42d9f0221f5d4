"""Findings in a compiler's text that names no mesh: groups stand where the axes would."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.load import load_bytes
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Finding

SampleCapture = Callable[[str], Capture]

FAULTY = {
    "gather_then_slice:faulty": "SS02",
    "missing_reduce_scatter:faulty": "SS01",
    "transformer:train_step": "SS01",
}
SPANS_OF_SHARDINGS = re.compile(rb", (?:sharding|frontend_attributes)=\{(?:[^{}]|\{[^{}]*\})*\}")


def sentences(finding: Finding) -> list[str]:
    return [finding.message, *(text for _, text in finding.evidence), *(fix.title for fix in finding.fixes)]


@pytest.mark.parametrize(("name", "rule"), FAULTY.items())
def test_groups_stand_for_axes(sample: SampleCapture, name: str, rule: str) -> None:
    stage = sample(name).stage("hlo")
    assert stage is not None
    if b"replica_groups=mesh[" in stage.source.data:
        pytest.skip("this XLA writes the axes into the groups")
    bare = load_bytes("bare.hlo", SPANS_OF_SHARDINGS.sub(b"", stage.source.data))
    report = inspect(bare)
    assert all(each.axes is None for each in report.collectives), "nothing names an axis"
    found = [each for each in report.findings if each.rule == rule]
    assert found
    for finding in found:
        assert re.search(r"over groups of \d+ devices", finding.message)
        for sentence in sentences(finding):
            assert not re.search(r"over \?|'\?'|over  |over [,:;]", sentence), sentence
