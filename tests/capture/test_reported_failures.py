"""Failures as they are sent: the number of devices that is needed, hints, and the user's frames, in this process."""

from __future__ import annotations

import ast
import traceback
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest
from shardscope.inspector.capture.attempt import Attempt
from shardscope.inspector.capture.endings import Ending
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Devices, Failure
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.protocol.workspace import DUMP
from shardscope.inspector.capture.warm import TOO_LATE
from shardscope.inspector.capture.worker import failures, main
from shardscope.inspector.capture.worker.needed_devices import needed


class Sent:
    phase = "compile"

    def __init__(self) -> None:
        self.events: list[Any] = []

    def send(self, event: Any) -> None:
        self.events.append(event)

    def now(self) -> float:
        return 1.5


def sent(error: BaseException, devices: int, chosen: int, target: str = "cpu") -> Any:
    channel = Sent()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "device_count", lambda: devices)
        main._send_failure(error, channel, Request("", chosen=chosen, target=target))  # type: ignore[arg-type]
    return channel.events


TOO_FEW = "Number of devices 8 must equal the product of mesh_shape (4, 4)"


@pytest.mark.parametrize(("devices", "chosen", "target"), [(8, 8, "cpu"), (8, 4, "cpu"), (8, 4, "tpu:v5e:8")])
def test_the_number_of_devices_that_is_needed(devices: int, chosen: int, target: str) -> None:
    """Asked for again where shardscope chose the number, and else reported."""
    *before, event = sent(ValueError(TOO_FEW), devices, chosen, target)
    assert isinstance(event, Failure)
    if devices == chosen:
        assert before == [Devices(16)]
        return
    assert before == []
    assert (event.kind, event.since) == ("usage", 1.5)
    assert event.message == f"16 devices are needed, but there are 8: ValueError: {TOO_FEW}"
    assert event.hint == ("--devices 16" if target == "cpu" else "a target of 16 devices, or a smaller mesh")


@pytest.mark.parametrize("devices", [16, 17, 32])
def test_no_more_are_needed_than_there_are(devices: int) -> None:
    (event,) = sent(ValueError(TOO_FEW), devices, 4)
    assert event.kind == "function"
    assert "are needed" not in event.message


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("requires a non-empty mesh in context", "--mesh x=4,y=2"),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm", "rematerialize more"),
        ("Unknown backend tpu", "--target local"),
        ("something else", None),
    ],
)
def test_hints_of_errors(message: str, hint: str | None) -> None:
    (found,) = sent(RuntimeError(message), 8, 8)
    assert isinstance(found, Failure)
    assert found.message == f"RuntimeError: {message}"
    assert (hint or "") in (found.hint or "")
    assert (found.hint is None) == (hint is None)


@pytest.mark.parametrize("by", ["cause", "context", "none"])
def test_what_an_exception_stands_for(by: str) -> None:
    """An exception that wants devices is found behind the one that was raised from it, or while it was handled."""

    def fail() -> None:
        try:
            raise ValueError(TOO_FEW)
        except ValueError as error:
            if by == "cause":
                raise KeyError("other") from error
            if by == "context":
                raise KeyError("other")  # noqa: B904
        raise KeyError("other")

    with pytest.raises(KeyError) as caught:
        fail()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "device_count", lambda: 8)
        assert needed(caught.value) == (None if by == "none" else 16)


def failing(depth: int) -> None:
    if depth:
        failing(
            depth - 1  # on a line of its own
        )
    jax.lax.add(jax.numpy.ones(3), jax.numpy.ones(4))


def test_frames_of_the_user_are_those_of_the_syntax() -> None:
    with pytest.raises(TypeError) as caught:
        failing(2)
    found = failures.user_stack(caught.value)
    tree = ast.parse(Path(__file__).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    add, again = (
        next(each for each in calls if ast.unparse(each.func) == name and len(each.args) == count)
        for name, count in (("jax.lax.add", 2), ("failing", 1))
    )
    places = [(each.lineno, each.end_lineno, each.col_offset, each.end_col_offset) for each in (add, again, again)]
    assert [(each.line, each.end_line, each.column, each.end_column) for each in found[:3]] == places
    assert {(each.file, each.function) for each in found[:3]} == {(__file__, "failing")}
    frame, line = failures.user_frame(caught.value)
    assert frame is not None
    assert (frame.f_code.co_name, line) == ("failing", add.lineno)
    assert failures.user_line(caught.value) == "jax.lax.add(jax.numpy.ones(3), jax.numpy.ones(4))"
    described = failures.describe(caught.value, "trace")
    assert described.stack[:3] == found[:3]
    assert "of JAX" in described.details
    assert not [line for line in described.details.splitlines() if "site-packages/jax" in line]


RUNNER = """
import sys
def call(function):
    return hand_on(function)
def hand_on(function):
    return function()
def leave():
    print("usage: script.py [OPTIONS]")
    sys.exit(2)
"""


@pytest.mark.parametrize("called", ["failing(0)", "runner.leave()", "json.loads('{')"])
def test_frames_of_libraries_are_folded_around_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    """The lines of the script are all there; of a library that ends it, no frame is."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "runner.py").write_text(RUNNER)
    file = tmp_path / "script.py"
    file.write_text(f"import json, runner\ndef main():\n    {called}\nrunner.call(main)\n")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    with pytest.raises((TypeError, SystemExit, ValueError)) as caught:
        exec(compile(file.read_text(), str(file), "exec"), {"failing": failing})
    told = failures.describe(caught.value, "script").details.splitlines()
    shown = [line.strip() for line in told if line.startswith("  ") and "^" not in line]
    at = shown.index("runner.call(main)")
    assert shown[at + 1 : at + 4] == ["… 2 frames of runner", f'File "{file}", line 3, in main', called]
    assert not [line for line in told if "site-packages" in line]
    assert called[:4] != "json" or told[-2] == "  … 3 frames of Python"
    assert told[-1].startswith(("TypeError: ", "SystemExit: 2", "json.decoder.JSONDecodeError: "))


def test_hint_of_a_mesh_is_not_for_a_script_that_is_run() -> None:
    """Neither where the script raises, nor where a function that it calls is captured."""
    error = RuntimeError("requires a non-empty mesh in context")
    found: list[Failure] = []
    names: dict[str, Any] = {
        "error": error,
        "tell": lambda: found.append(failures.describe(error, "trace", is_own=True)),
    }
    with suppress(RuntimeError):
        exec(compile("raise error", "/script.py", "exec"), names)
    names["tell"]()
    error.__traceback__ = None
    exec(compile("tell()", "/script.py", "exec"), names)
    names["tell"]()
    assert [failure.hint is None for failure in found] == [True, True, False]


def test_frames_without_columns() -> None:
    summary = traceback.StackSummary.from_list([("/step.py", 3, "step", "x")])
    (found,) = failures.users_of(summary)
    assert (found.line, found.column, found.end_column) == (3, 0, 0)


def test_stages_are_taken_when_they_have_stopped_to_grow(tmp_path: Path) -> None:
    """What a compiler has written since the last look may not be all of it."""
    propagated: list[int] = []
    folder = tmp_path / DUMP
    folder.mkdir()
    attempt: Any = SimpleNamespace(
        _workspace=tmp_path, _sizes={}, _growing=Capture(), _propagate=lambda: propagated.append(1)
    )
    before = folder / "module_0001.jit_fn.before_spmd-partitioning.txt"
    for text in ("", "HloModule", "HloModule m\n"):
        before.write_text(text)
        Attempt._peek(attempt)
        assert attempt._growing.stages == ()
    assert not propagated
    Attempt._peek(attempt)
    (stage,) = attempt._growing.stages
    assert (stage.name, stage.source.data) == ("hlo-before", b"HloModule m\n")
    assert propagated
    Attempt._peek(attempt)
    assert len(attempt._growing.stages) == 1


@pytest.mark.parametrize("is_warm", [True, False])
@pytest.mark.parametrize("status", [0, TOO_LATE])
def test_only_a_fork_is_too_late(status: int, is_warm: bool) -> None:
    attempt: Any = SimpleNamespace(
        _growing=Capture(complete=True), _end=None, _process=SimpleNamespace(is_warm=is_warm), is_too_late=None
    )
    found = Attempt._finished(attempt, Ending(status, None, b"out \xff", b"err", None))
    assert attempt.is_too_late == (status == TOO_LATE and is_warm)
    assert (found.stdout, found.stderr, found.failure) == ("out \ufffd", "err", None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(2, "No such file or directory", "/python"), "usage"),
        (RuntimeError("can't start new thread"), "died"),
    ],
)
def test_what_cannot_be_run(error: Any, kind: str) -> None:
    attempt: Any = SimpleNamespace(_growing=Capture(), _end=None, _python="/usr/bin/python3")
    failure = Attempt._finished(attempt, error).failure
    assert failure is not None
    where, reason = ("/python", error.strerror) if kind == "usage" else ("/usr/bin/python3", str(error))
    assert (failure.kind, failure.message, failure.phase) == (kind, f"cannot run {where}: {reason}", "start")
