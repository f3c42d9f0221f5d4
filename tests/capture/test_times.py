"""The pipeline: measured times of its collectives on every device, and values that move down its stages."""

from __future__ import annotations

import jax
import pytest
from shardscope.inspector.pipeline import inspect
from shardscope.samples.catalogue import samples

from .conftest import Captured


def test_times_of_each_collective(captured: Captured) -> None:
    path = next(sample.path for sample in samples() if sample.name == "pipeline")
    capture = captured(path.read_text(), "grad")
    listed = {c.name: c.executions for c in inspect(capture).collectives if c.stage == "hlo"}
    assert listed
    measured = capture.collective_times
    if jax.__version_info__ < (0, 7, 2):
        assert measured == ()
        assert [
            m.text for m in capture.messages if m.text.startswith("collectives are not timed: the profiler of this")
        ]
        pytest.skip("this profiler names no instructions on the CPU")
    assert {timing.name for timing in measured} == set(listed)
    for name, executions in listed.items():
        timings = [timing for timing in measured if timing.name == name]
        assert [timing.device for timing in timings] == [0, 1, 2, 3]
        assert {timing.count for timing in timings} == {executions}
        assert all(timing.seconds > 0 for timing in timings)
        assert min(timing.late for timing in timings) >= 0


def test_values_move_down_the_stages(captured: Captured) -> None:
    """Iteration by iteration; the first stage gets zeros."""
    path = next(sample.path for sample in samples() if sample.name == "pipeline")
    capture = captured(path.read_text(), "grad")
    moved = [value.probe for value in inspect(capture).probes if value.primitive == "ppermute"]
    forward = {(p.when, p.iteration): p for p in moved if p.path[-1] == moved[0].path[-1]}
    assert {iteration for _, iteration in forward} == {(n,) for n in range(9)}
    for iteration in range(9):
        before, after = (forward[when, (iteration,)] for when in ("before", "after"))
        assert [s.digest for s in after.shards[1:]] == [s.digest for s in before.shards[:-1]]
        assert (after.shards[0].minimum, after.shards[0].maximum) == (0, 0)
