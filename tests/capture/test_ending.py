"""Whoever stops a capture, in whatever way, leaves no process and no folder behind."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardscope.inspector.capture import spawn
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Failure
from shardscope.inspector.capture.spawn import Cancellation, Request, capture

from .test_isolation import alive

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

BUSY = """
import os, subprocess, sys, time
def fn(): ...
helper = subprocess.Popen(["sleep", "1000"])
open(sys.argv[1], "w").write(f"{os.getpid()} {helper.pid}")
time.sleep(1000)
"""


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Request, Path]:
    """A script that never ends, and the file in which it tells its process and one that it started."""
    (tmp_path / "busy.py").write_text(BUSY)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return Request(f"{tmp_path}/busy.py:fn", argv=(str(tmp_path / "pids"),)), tmp_path / "pids"


def pids(file: Path) -> list[int]:
    for _ in range(200):
        if file.is_file() and len(text := file.read_text().split()) == 2:
            return [int(pid) for pid in text]
        time.sleep(0.05)
    raise AssertionError("the script did not start")


def nothing_left(file: Path) -> bool:
    return not any(map(alive, pids(file))) and not any((file.parent / "temporary").iterdir())


def begun(captures: Iterator[Capture], file: Path) -> None:
    """Iterate until the script runs."""
    for latest in captures:
        if latest.script_text is not None:
            break
    assert all(map(alive_now, pids(file)))


def alive_now(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_closing_the_iterator(busy: tuple[Request, Path]) -> None:
    request, file = busy
    captures = capture(request)
    begun(captures, file)
    captures.close()  # type: ignore[attr-defined]
    assert nothing_left(file)


def test_an_exception_in_the_loop(busy: tuple[Request, Path]) -> None:
    request, file = busy

    def stumble() -> None:
        for latest in capture(request):
            if latest.script_text is not None and pids(file):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stumble()
    assert nothing_left(file)


def test_cancelling_from_another_thread(busy: tuple[Request, Path]) -> None:
    request, file = busy
    cancellation = Cancellation()
    received: queue.Queue[Capture | None] = queue.Queue()

    def iterate() -> None:
        for latest in capture(request, cancellation):
            received.put(latest)
        received.put(None)

    thread = threading.Thread(target=iterate)
    thread.start()
    pids(file)
    cancellation.cancel()
    thread.join(10)
    assert not thread.is_alive()
    items = list(received.queue)
    assert items.pop() is None
    assert all(item is not None and item.failure is None and not item.complete for item in items)
    assert nothing_left(file)


def test_cancelled_before_it_begins(busy: tuple[Request, Path]) -> None:
    request, file = busy
    cancellation = Cancellation()
    cancellation.cancel()
    assert [latest for latest in capture(request, cancellation) if latest.complete] == []
    assert not any((file.parent / "temporary").iterdir())


FRONT = """
import signal, sys
from shardscope.inspector.capture.spawn import Request, capture
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background, it is ignored
for latest in capture(Request(sys.argv[1], argv=(sys.argv[2],))):
    pass
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_signals_to_the_process_in_front(busy: tuple[Request, Path], number: signal.Signals) -> None:
    request, file = busy
    front = subprocess.Popen(
        [sys.executable, "-c", FRONT, request.function, str(file)],
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(file.parent / "temporary")},
    )
    script, helper = pids(file)
    front.send_signal(number)
    _, stderr = front.communicate(timeout=20)
    assert not alive(script)
    if number == signal.SIGINT:  # The others give it no chance to end what the script started, or to clean up.
        assert b"KeyboardInterrupt" in stderr
        assert nothing_left(file)
    else:
        os.kill(helper, signal.SIGKILL)


def test_a_fork_dies_with_the_process_in_front(tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(
        "import os, sys, time\ndef fn(): ...\n"
        "child = os.fork()\n"
        "if child: open(sys.argv[1], 'w').write(f'{os.getpid()} {child}')\n"
        "time.sleep(1000)\n"
    )
    front = subprocess.Popen(
        [sys.executable, "-c", FRONT, f"{tmp_path}/forks.py:fn", str(tmp_path / "pids")],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    both = pids(tmp_path / "pids")
    front.kill()
    front.wait()
    assert not any(map(alive, both))


def test_a_timeout_takes_everything_with_it(busy: tuple[Request, Path]) -> None:
    request, file = busy
    *_, latest = capture(Request(request.function, argv=request.argv, timeout=1.0))
    assert latest.failure is not None
    assert latest.failure.kind == "died"
    assert nothing_left(file)


def test_a_folder_that_cannot_be_made(busy: tuple[Request, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    request, _ = busy
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    (latest,) = capture(request)
    assert latest.failure is not None
    assert latest.failure.kind == "usage"


def test_the_number_of_attempts_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that wants ever more devices is told of as it was with those that it had first."""
    begun_with: list[int | None] = []

    class Attempt:
        def __init__(self, request: Request, target: object, devices: int | None, *rest: object) -> None:
            begun_with.append(devices)
            self.wanted = (devices or 0) * 2
            self.is_tried = self.is_too_late = False

        def captures(self) -> Iterator[Capture]:
            yield Capture(failure=Failure("function", f"with {begun_with[-1]}", "import"))

        def kill(self) -> None:
            pass

    monkeypatch.setattr(spawn, "Attempt", Attempt)
    latest = list(capture(Request(f"{tmp_path}/x.py:fn")))[-1]
    assert begun_with == [8, 16, 32, 64]
    assert latest.failure is not None
    assert latest.failure.message == "with 8"
