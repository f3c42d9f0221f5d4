"""Measured times are of the collectives that run, as often as they do, on every device."""

from __future__ import annotations

from shardscope.inspector.pipeline import inspect
from shardscope.samples.catalogue import samples

from .conftest import Captured


def test_times_of_each_collective(captured: Captured) -> None:
    path = next(sample.path for sample in samples() if sample.name == "pipeline")
    capture = captured(path.read_text(), "grad")
    listed = {c.name: c.executions for c in inspect(capture).collectives if c.stage == "hlo"}
    assert listed
    measured = capture.collective_times
    assert {timing.name for timing in measured} == set(listed)
    for name, executions in listed.items():
        timings = [timing for timing in measured if timing.name == name]
        assert [timing.device for timing in timings] == [0, 1, 2, 3]
        assert {timing.count for timing in timings} == {executions}
        assert all(timing.seconds > 0 for timing in timings)
        assert min(timing.late for timing in timings) >= 0
