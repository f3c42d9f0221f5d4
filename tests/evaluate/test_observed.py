"""Values of a program that was evaluated, not run: collectives against numpy, outputs against a run."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.validation import begin_validated
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import ProbedValue, Report
from shardscope.inspector.report.elements import shard_elements
from shardscope.samples.catalogue import samples

pytestmark = pytest.mark.once

SAMPLES = {sample.name: str(sample.path) for sample in samples()}


def evaluated(name: str, target: str) -> Report:
    sample, function = name.split(":")
    request = Request(f"{SAMPLES[sample]}:{function}", target=target, live=False, probe="none")
    *_, last = begin_validated(request, 60).captures
    assert last.validation is not None
    assert (last.validation.status, last.validation.reason) == ("same", "")
    return inspect(last)


def arrays(value: ProbedValue) -> dict[int, np.ndarray]:
    """The recorded elements by device."""
    probe = value.probe
    found = {}
    for number, shard in enumerate(probe.shards):
        elements = shard_elements(probe, number)
        assert elements is not None
        found[shard.device] = np.array(elements).reshape(probe.extent)
    return found


@pytest.mark.parametrize("name", ["grad_accumulation:each_time", "data_parallel:grad", "pipeline:loss"])
def test_a_collective_of_its_values_is_what_numpy_makes_of_them(name: str) -> None:
    report = evaluated(name, "cpu")
    compiled = {f"%{each.name}": each for each in report.collectives if each.stage == "hlo"}
    by_run: dict[object, dict[str, ProbedValue]] = defaultdict(dict)
    for value in report.probes:
        if value.probe.path:
            assert value.source == compiled[value.probe.path[0]].source
            by_run[value.probe.path, value.probe.iteration, value.probe.position][value.probe.when] = value
    assert by_run
    for sides in by_run.values():
        collective = compiled[sides["after"].probe.path[0]]
        before, after = arrays(sides["before"]), arrays(sides["after"])
        if collective.kind == "all-reduce":
            for group in collective.groups:
                for device in group:
                    np.testing.assert_allclose(after[device], sum(before[each] for each in group))
        else:
            assert collective.kind == "collective-permute"
            received = {target: before[source] for source, target in collective.pairs}
            for device, found in after.items():
                np.testing.assert_array_equal(found, received.get(device, np.zeros_like(found)))


def test_each_iteration_has_its_values() -> None:
    report = evaluated("grad_accumulation:each_time", "cpu")
    (loop,) = {value.probe.loops for value in report.probes if value.probe.path}
    assert len(loop) == 1
    assert {value.probe.iteration for value in report.probes if value.probe.path} == {(n,) for n in range(6)}


@pytest.mark.parametrize("target", ["cpu", "tpu:v5e:2x4"])
def test_outputs_are_those_of_a_run(target: str) -> None:
    if target != "cpu":
        pytest.importorskip("libtpu")
    found = evaluated("fsdp_tp:grad", target)
    ran = inspect(last_capture(Request(f"{SAMPLES['fsdp_tp']}:grad", target="cpu", probe="all")))
    expected = {value.name: value for value in ran.probes if value.probe.when == "output"}
    outputs = [value for value in found.probes if value.probe.when == "output"]
    assert {value.name for value in outputs} == expected.keys()
    for value in outputs:
        run = {shard.part: shard for shard in expected[value.name].probe.shards}
        for shard in value.probe.shards:
            assert shard.mean == pytest.approx(run[shard.part].mean, rel=2e-2, abs=1e-3)
            assert shard.maximum == pytest.approx(run[shard.part].maximum, rel=2e-2, abs=1e-3)
            assert len(shard.coordinates) == len(value.probe.axes) == 2
