"""The process that ends what another one has started."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shardscope.inspector.capture import guarding
from shardscope.inspector.capture.children import Children
from shardscope.inspector.capture.guarding import CLOSED, MARK, by_proc


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows a process's environment")
def test_a_guardian_is_not_ended_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What inherits a mark is ended: a guardian has none, and what it shall end has that of each."""
    monkeypatch.setenv(MARK, ":outer")
    with Children() as children:
        environ, deadline = Path(f"/proc/{children._guardian.pid}/environ"), time.monotonic() + 60
        while not (text := environ.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)  # between fork and exec there is none
        own = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
        assert MARK not in own
        assert own.keys() >= {"PATH"} & os.environ.keys()
        assert children._mark
        shown = [sys.executable, "-c", f"import os; print(os.environ[{MARK!r}], len(os.environ))"]
        for environment, marks in (None, ":outer:"), ({}, ":"):
            child = children.begin(shown, environment, stdout=subprocess.PIPE)
            mark, count = child.communicate()[0].decode().split()
            assert mark == f"{marks}{children._mark}"
            assert (int(count) > 3) == (environment is None)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are listed from /proc")
def test_a_guarded_command_ends_with_its_front(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    sleeping = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    program = (
        "import sys; from shardscope.inspector.capture.children import run;"
        f" run([sys.executable, '-c', {sleeping!r}], timeout=100)"
    )
    front = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not (file.is_file() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    front.kill()
    front.wait()
    while int(file.read_text()) in {pid for pid, _, _ in by_proc()}:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_that_is_closed_does_not_wait_for_a_front_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would make each capture longer by the time of parting."""
    sleeping: list[float] = []
    monkeypatch.setattr(guarding.time, "sleep", sleeping.append)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLOSED)))
    guarding.main(os.getppid(), str(tmp_path), b"mark of no process")
    assert sleeping == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows a process's environment")
def test_what_is_left_are_roots_groups_descendants_and_marked_ones() -> None:
    command = ["sh", "-c", "echo; sleep 100 & wait"]
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    marks = (":theirs:ours", ":theirs", None)
    processes = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            env=environment | ({} if mark is None else {MARK: mark}),
            start_new_session=True,
        )
        for mark in marks
    ]
    try:
        for each in processes:
            assert each.stdout is not None
            each.stdout.readline()
        deadline = time.monotonic() + 60
        while len(
            groups := [{pid for pid, _, group in by_proc() if group == each.pid} for each in processes]
        ) and not all(len(each) == 2 for each in groups):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ours, theirs, unmarked = groups
        assert guarding._left(set(), b"ours") == ours
        assert guarding._left(set(), b"theirs") == ours | theirs
        assert guarding._left(set(), b"nobody's") == set()
        assert guarding._left({processes[2].pid}, b"nobody's") == unmarked
        assert guarding._left({os.getpid()}, b"nobody's") >= ours | theirs | unmarked
        assert os.getpid() not in guarding._left({os.getpid()}, b"nobody's")
        if shutil.which("ps"):
            known = ours | theirs | unmarked
            assert {each for each in guarding.by_ps() if each[0] in known} == {e for e in by_proc() if e[0] in known}
    finally:
        for each in processes:
            os.killpg(each.pid, signal.SIGKILL)
            each.communicate()
