"""What is decided from files while processes write them: that ranks have diverged, and where Shardy's own files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from shardscope.inspector.capture import several
from shardscope.inspector.capture.protocol import wire
from shardscope.inspector.capture.protocol.events import Event, frame_of
from shardscope.inspector.capture.protocol.request import UsageError, _sizes
from shardscope.inspector.capture.protocol.trace import EVENTS_FILE, Called, ProcessStarted, ScriptEnded, TraceOptions
from shardscope.inspector.capture.protocol.workspace import find_propagation
from shardscope.inspector.capture.worker.inputs.resolve import _suggest
from shardscope.inspector.traces import rank_watch

CALLS = (Called(0), Called(0))


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (CALLS, CALLS, False),
        (CALLS, CALLS[:1], False),
        (CALLS, (*CALLS[:1], ScriptEnded()), True),
        ((*CALLS, ScriptEnded()), (*CALLS, ScriptEnded()), False),
        (CALLS, (ScriptEnded(),), True),
        ((*CALLS[:1], ScriptEnded()), CALLS, True),
    ],
)
def test_ranks_that_still_run(
    one: Sequence[Event], other: Sequence[Event], differ: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has called less may still call the rest, until its script has ended."""
    monkeypatch.setattr(rank_watch, "GRACE_S", 0.0)
    for rank, events in enumerate((one, other)):
        (tmp_path / str(rank)).mkdir()
        started = ProcessStarted(rank + 1, ("script.py",), "python", 0.0, rank)
        frames = (wire.encode(frame_of(event)) for event in (started, *events))
        (tmp_path / str(rank) / EVENTS_FILE).write_bytes(b"".join(frames))
    watch = rank_watch.RankWatch(tmp_path)
    assert watch.why_to_end() == ("they run different programs" if differ else "")
    assert watch.have_ended(2) == (one[-1] == other[-1] == ScriptEnded())
    assert not watch.have_ended(3)


@pytest.mark.parametrize("have_ended", [True, False])
def test_processes_that_wait_after_their_scripts(
    have_ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are ended, and only those whose scripts have not ended are said to wait for each other."""
    monkeypatch.setattr(several, "STALLED_S", 0.3)
    monkeypatch.setattr(several, "CHECK_S", 0.1)
    monkeypatch.setattr(several, "check_recorded", lambda folder: None)
    options = TraceOptions(None, None, True, "cpu", processes=2)
    finished = several.run_processes(["sleep", "600"], tmp_path, options, 2, have_ended=lambda: have_ended)
    assert finished.statuses == (None, None)
    assert finished.status == 0
    assert ("waited for each other" in finished.why) != have_ended


def test_the_files_of_a_propagation(tmp_path: Path) -> None:
    """All three, or none."""
    inner = tmp_path / "module_0001.jit_f"
    inner.mkdir()
    paths = (
        tmp_path / "module_0001.jit_f.x.before_shardy-xla.txt",
        inner / "01.before_propagation.mlir",
        inner / "02.after_propagation.mlir",
    )
    for missing in paths:
        for path in paths:
            path.write_text("x")
        assert find_propagation(str(tmp_path)) == paths
        missing.unlink()
        assert find_propagation(str(tmp_path)) is None


def test_three_names_at_most_are_suggested() -> None:
    class Owner:
        step1 = step2 = step3 = step4 = step5 = 1

    said = _suggest("step", Owner)
    assert said is not None
    assert sum(f"step{number}" in said for number in range(1, 6)) == 3


@pytest.mark.parametrize(("size", "is_one"), [("0", False), ("1", True), ("1048575", True), ("1048576", False)])
def test_sizes_of_axes(size: str, is_one: bool) -> None:
    if is_one:
        assert _sizes("", f"x:2,y:{size}") == {"x": 2, "y": int(size)}
    else:
        with pytest.raises(UsageError):
            _sizes("", f"x:2,y:{size}")
