"""Every collective of every sample, against what a plain reading of the compiled text finds."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from shardscope.inspector.capture.model import Capture, Mesh
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective, Report

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

OPENING = re.compile(
    r"^\s*(?:ROOT )?%?[\w.\-]+ = .*? (all-reduce|reduce-scatter|all-gather|all-to-all|collective-permute)(?:-start)?\(",
    re.MULTILINE,
)


@pytest.fixture(params=SAMPLE_FUNCTIONS)
def report(request: pytest.FixtureRequest, sample: SampleCapture) -> Report:
    return inspect(sample(request.param))


def compiled(report: Report) -> list[Collective]:
    return [collective for collective in report.collectives if collective.stage == "hlo"]


def text(capture: Capture, stage: str) -> str:
    found = capture.stage(stage)
    assert found is not None
    return found.source.text()


def test_a_sample(report: Report) -> None:
    """One test for all that has to hold, so that each sample is captured once."""
    check_none_is_lost_and_none_counted_twice(report)
    check_stablehlo_agrees_with_its_text(report)
    check_axes_form_the_groups(report)
    check_sizes_follow_from_types(report)
    check_problems(report)


def check_none_is_lost_and_none_counted_twice(report: Report) -> None:
    read = Counter(OPENING.findall(text(report.capture, "hlo")))
    assert Counter(collective.kind for collective in compiled(report)) == read
    assert len({collective.span for collective in compiled(report)}) == sum(read.values())


def check_stablehlo_agrees_with_its_text(report: Report) -> None:
    read = Counter(
        name.replace("_", "-")
        for name in re.findall(
            r'"stablehlo\.(all_reduce|reduce_scatter|all_gather|all_to_all|collective_permute)"\(',
            text(report.capture, "stablehlo"),
        )
    )
    assert Counter(c.kind for c in report.collectives if c.stage == "stablehlo") == read


def check_axes_form_the_groups(report: Report) -> None:
    """Brute force: devices that agree in all coordinates but those of the axes."""
    subject = report.capture.subject
    assert subject is not None
    for collective in report.collectives:
        assert collective.axes is not None, collective
        if collective.pairs or not any(axis.sub is None for axis in collective.axes):
            continue
        assert any(
            groups_along(mesh, tuple(map(str, collective.axes)), subject.device_assignment)
            == set(map(frozenset, collective.groups))
            for mesh in subject.meshes
        ), collective


def groups_along(mesh: Mesh, axes: tuple[str, ...], assignment: tuple[int, ...]) -> set[frozenset[int]]:
    names = [axis.name for axis in mesh.axes]
    if not set(axes) <= set(names):
        return set()
    array = np.array([assignment.index(device) for device in mesh.device_ids]).reshape(
        [axis.size for axis in mesh.axes]
    )
    along = [names.index(axis) for axis in axes]
    rows = np.moveaxis(array, along, range(len(along))).reshape(int(np.prod([array.shape[i] for i in along])), -1)
    return set(map(frozenset, rows.T.tolist()))


def check_sizes_follow_from_types(report: Report) -> None:
    for collective in report.collectives:
        size = max(map(len, collective.groups), default=1)
        assert collective.bytes_in is not None
        assert collective.bytes_out is not None
        match collective.kind:
            case "all-gather":
                assert collective.bytes_out == size * collective.bytes_in
                assert collective.wire_bytes == collective.bytes_out - collective.bytes_in
            case "reduce-scatter":
                assert collective.bytes_in == size * collective.bytes_out
                assert collective.wire_bytes == collective.bytes_in - collective.bytes_out
            case "all-reduce":
                assert collective.bytes_in == collective.bytes_out
                assert collective.wire_bytes == -(-2 * collective.bytes_in * (size - 1) // size)
            case "all-to-all" | "collective-permute":
                assert collective.bytes_in == collective.bytes_out


def check_problems(report: Report) -> None:
    assert [problem for stage in report.program.stages for problem in stage.problems] == []
