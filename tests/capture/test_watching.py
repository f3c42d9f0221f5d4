"""What is decided from files while processes write them: that ranks have diverged, and where Shardy's own files are."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax import lax
from shardscope.inspector.capture import children, tracing
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.capture.propagation import is_explained
from shardscope.inspector.capture.protocol import wire
from shardscope.inspector.capture.protocol.events import Event, Message, frame_of
from shardscope.inspector.capture.protocol.request import Request, UsageError, _sizes
from shardscope.inspector.capture.protocol.trace import EVENTS_FILE, Called, ProcessStarted, ScriptEnded, TraceOptions
from shardscope.inspector.capture.protocol.values import Probed
from shardscope.inspector.capture.protocol.workspace import compiler_options, find_propagation
from shardscope.inspector.capture.worker import failures
from shardscope.inspector.capture.worker.channel import Channel
from shardscope.inspector.capture.worker.inputs.resolve import _suggest
from shardscope.inspector.capture.worker.probes import watching
from shardscope.inspector.capture.worker.probes.live import Inputs
from shardscope.inspector.capture.worker.probes.probes import _window
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table
from shardscope.inspector.traces import read
from shardscope.parsers.source import Source

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
    monkeypatch.setattr(read, "GRACE_S", 0.0)
    for rank, events in enumerate((one, other)):
        (tmp_path / str(rank)).mkdir()
        started = ProcessStarted(rank + 1, ("script.py",), "python", 0.0, rank)
        frames = (wire.encode(frame_of(event)) for event in (started, *events))
        (tmp_path / str(rank) / EVENTS_FILE).write_bytes(b"".join(frames))
    watch = read.RankWatch(tmp_path)
    assert watch.why_to_end() == ("they run different programs" if differ else "")
    assert watch.have_ended(2) == (one[-1] == other[-1] == ScriptEnded())
    assert not watch.have_ended(3)


@pytest.mark.parametrize("have_ended", [True, False])
def test_processes_that_wait_after_their_scripts(
    have_ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are ended, and only those whose scripts have not ended are said to wait for each other."""
    monkeypatch.setattr(children, "STALLED_S", 0.3)
    monkeypatch.setattr(children, "CHECK_S", 0.1)
    monkeypatch.setattr(tracing, "check_recorded", lambda folder: None)
    options = TraceOptions(None, None, True, "cpu", processes=2)
    finished = tracing.run_traced(["sleep", "600"], tmp_path, options, 2, have_ended=lambda: have_ended)
    assert finished.statuses == (None, None)
    assert finished.status == 0
    assert (finished.why == "") == have_ended
    assert ("waited for each other" in finished.why) != have_ended


@pytest.mark.parametrize(("seconds", "statuses"), [(10.0, (3, 0)), (0.0, (3, None))])
def test_processes_beside_one_that_failed_have_some_time_to_end(
    seconds: float, statuses: tuple[int | None, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "FAILED_GRACE_S", seconds)
    monkeypatch.setattr(children, "POLL_S", 0.05)
    monkeypatch.setattr(tracing, "check_recorded", lambda folder: None)
    options = TraceOptions(None, None, True, "cpu", processes=2)
    command = ["sh", "-c", f"test {{rank}} = 1 || exit 3; sleep {0.3 if seconds else 600}"]
    finished = tracing.run_traced(command, tmp_path, options, 2)
    assert (finished.statuses, finished.status) == (statuses, 3)
    assert finished.why == (
        "process 0 ended with exit status 3, for which the others waited" if None in statuses else ""
    )


def test_processes_may_wait_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "CHECK_S", 0.05)
    monkeypatch.setattr(children, "POLL_S", 0.05)
    monkeypatch.setattr(tracing, "check_recorded", lambda folder: None)
    options = TraceOptions(None, None, True, "cpu", processes=2)
    finished = tracing.run_traced(["sleep", "0.5"], tmp_path, options, 2)
    assert (finished.statuses, finished.why) == ((0, 0), "")
    late = tracing.run_traced(["sleep", "600"], tmp_path, options, 2, timeout=0.1)
    assert (late.statuses, late.why) == ((None, None), "the time limit of --timeout was reached")
    ended = tracing.run_traced(["sleep", "600"], tmp_path, options, 2, why_to_end=lambda: "they differ")
    assert (ended.statuses, ended.why) == ((None, None), "they differ")


def test_processes_that_compute_or_want_to_are_not_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seconds that the system says of them, and those for which they waited for a processor."""
    for name, seconds in (("CHECK_S", 0.05), ("POLL_S", 0.02), ("STALLED_S", 0.1)):
        monkeypatch.setattr(children, name, seconds)
    monkeypatch.setattr(tracing, "check_recorded", lambda folder: None)
    options = TraceOptions(None, None, True, "cpu", processes=2)
    for ran, wanted in ((10, 0), (0, 10)):
        clock = itertools.count()
        monkeypatch.setattr(children, "processor_seconds", lambda pids, ran=ran: float(ran * next(clock)))  # noqa: B023
        ready = itertools.count()
        monkeypatch.setattr(children, "ready_seconds", lambda pids, w=wanted: {tmp_path: w * next(ready)})  # noqa: B023
        finished = tracing.run_traced(["sleep", "0.6"], tmp_path, options, 2)
        assert (finished.statuses, finished.why) == ((0, 0), "")


def test_what_the_first_process_prints_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads our input; the others have none, and a file each for what they print."""
    monkeypatch.setattr(tracing, "check_recorded", lambda folder: None)
    options = TraceOptions(None, None, True, "cpu", processes=3)
    with (tmp_path / "stdout").open("wb") as stdout:
        tracing.run_traced(["echo", "{rank}"], tmp_path, options, 2, stdout)
    printed = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert printed == {"stdout": "0\n", "output-1.txt": "1\n", "output-2.txt": "2\n"}


@pytest.mark.parametrize(("chosen", "wanted"), [("all", True), ("constraints", True), ("collectives", False)])
def test_a_program_is_compiled_again_where_values_inside_are_wanted(
    chosen: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching.timings, "measure", lambda *_: ())
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for function, has_some in (lambda x: x + 1, False), (lambda x: lax.with_sharding_constraint(x, sharding), True):
        sent: list[Event] = []
        traced = jax.jit(function).trace(np.ones(2, np.float32))
        compiled, table = traced.lower().compile(), Table(traced.jaxpr)
        table.encode()
        leaf = jax.device_put(np.ones(2, np.float32))
        inputs = Inputs([leaf], jax.tree.structure(((leaf,), {})), [False], False)
        program = watching.Program(traced, compiled, table, inputs, [compiled(leaf)], 0.0)
        watching.watch(Request("script.py:f", probe=chosen), program, Channel(sent.append))
        assert any(isinstance(each, Probed) for each in sent) == (wanted and has_some)


def test_the_files_of_a_propagation(tmp_path: Path) -> None:
    """All three, or none."""
    inner = tmp_path / "module_0001.jit_f"
    inner.mkdir()
    paths = (
        tmp_path / "module_0001.jit_f.x.after_shardy-xla.before_y.txt",
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


def test_functions_are_suggested_where_there_are_any() -> None:
    assert _suggest("step", SimpleNamespace(train=len, size=3)) == "it has train"
    assert _suggest("step", SimpleNamespace(size=3)) is None


def test_the_line_being_run_is_the_users() -> None:
    assert failures.line_being_run() == f"{__file__}:{inspect.currentframe().f_lineno}"  # type: ignore[union-attr]


def test_origins_are_final_where_none_come() -> None:
    """Those of a program with a mesh are, once Shardy has run, or said that it cannot."""
    without, lowered = (
        Stage("stablehlo", "stablehlo", Source("x", text)) for text in (b"module {}", b"module { sdy.mesh @m = <> }")
    )
    propagated = Stage("sdy", "stablehlo", lowered.source)
    failed = Message("warning", "it crashed", "propagation")
    assert all(is_explained(Capture(stages=stages)) for stages in ((), (without,), (lowered, propagated)))
    assert not is_explained(Capture(stages=(lowered,)))
    assert is_explained(Capture(stages=(lowered,), messages=(failed,)))


@pytest.mark.parametrize(("kind", "is_ours"), [("ValueError", True), ("JaxRuntimeError", False)])
def test_what_a_compiler_raises_is_not_raised_by_us(kind: str, is_ours: bool) -> None:
    code = compile(f"raise type({kind!r}, (Exception,), {{}})", f"{failures.HERE}/module.py", "exec")
    with pytest.raises(Exception, match=r"^$") as raised:
        exec(code, {})
    assert failures._raised_here(raised.value) == is_ours


def test_large_constants_are_written_where_they_are_wanted() -> None:
    options = compiler_options("folder", "pass")
    assert compiler_options("folder", "pass", in_full=True) == options | {"xla_dump_large_constants": True}
    assert options == {"xla_dump_to": "folder", "xla_dump_hlo_pass_re": "pass"}


@pytest.mark.parametrize(("most", "extent"), [(16, (2, 8)), (15, (2, 3)), (1, (1, 1))])
def test_of_a_small_shard_all_is_recorded(most: int, extent: tuple[int, int]) -> None:
    assert _window((2, 8), (), most) == ((0, 0), extent)


@pytest.mark.parametrize(("size", "is_one"), [("0", False), ("1", True), ("1048575", True), ("1048576", False)])
def test_sizes_of_axes(size: str, is_one: bool) -> None:
    if is_one:
        assert _sizes("", f"x:2,y:{size}") == {"x": 2, "y": int(size)}
    else:
        with pytest.raises(UsageError):
            _sizes("", f"x:2,y:{size}")


def test_each_process_has_the_variables_of_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a seed of hashes of its own, as on hosts, where the user sets none."""
    options = TraceOptions(coordinator="127.0.0.1:8476", processes=4, rank=2)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    found = tracing._launcher_variables(options)
    assert (found["MASTER_ADDR"], found["MASTER_PORT"], found["RANK"], found["WORLD_SIZE"]) == (
        "127.0.0.1",
        "8476",
        "2",
        "4",
    )
    assert found["JAX_COORDINATOR_ADDRESS"] == options.coordinator
    assert found["PYTHONHASHSEED"] == "3"
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert "PYTHONHASHSEED" not in tracing._launcher_variables(options)
