"""A command that is killed: all that it started ends, and its temporary folders go, without anyone's doing."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from shardscope.inspector.capture import guarding

from tests.sweeps import sampled

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="looks for marks in /proc")]

BUSY = """
import os, subprocess, time
fifo = os.open(os.environ["FIFO"], os.O_WRONLY)
if os.environ.get("RANK", "0") == "0":
    subprocess.Popen(["sleep", "1000"], pass_fds=[fifo], start_new_session=True)
    subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"], pass_fds=[fifo])
os.write(fifo, b"x")
time.sleep(1000)

def fn():
    pass
"""
"""All of its processes have one end of a pipe, whose other end tells when none of them is there any more."""

COMMANDS = {
    "run": ("busy.py:fn",),
    "check": ("busy.py:fn", "--budget", "all-reduce: none"),
    "trace": ("busy.py",),
    "trace --processes": ("2", "busy.py"),
    "ranks --processes": ("2", "busy.py"),
}

LONGEST_S = 120.0


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[int]:
    """The end of the pipe that is read."""
    (tmp_path / "busy.py").write_text(BUSY)
    (tmp_path / "temporary").mkdir()
    os.mkfifo(tmp_path / "fifo")
    descriptor = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def read(fifo: int) -> bytes:
    """The next that is written; nothing if nobody has the other end any more."""
    assert select.select([fifo], [], [], LONGEST_S)[0]
    return os.read(fifo, 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
@pytest.mark.parametrize("command", sampled(COMMANDS, ("run", "trace", "ranks --processes")))
def test_all_ends(tmp_path: Path, fifo: int, command: str, number: signal.Signals) -> None:
    if number != signal.SIGKILL and command in ("run", "check"):
        pytest.skip("test_signals.py has it")
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the command ignores it, as it should
    front = subprocess.Popen(
        [sys.executable, "-m", "shardscope", *command.split(), *COMMANDS[command]],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary"), "FIFO": str(tmp_path / "fifo")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    signal.signal(signal.SIGHUP, ignored)
    for _ in range(2 if "--processes" in command else 1):
        assert read(fifo) == b"x"
    front.send_signal(number)
    assert front.wait(LONGEST_S) == (-number if number == signal.SIGKILL else 128 + number)
    assert read(fifo) == b""
    deadline = time.monotonic() + LONGEST_S
    while (left := list((tmp_path / "temporary").iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


FAILING = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",))
print(jax.jit(lambda x: x + 1)(jax.device_put(np.ones(6), NamedSharding(mesh, P("x")))))
"""

PHASES = {
    "capture": ("\0main\0", "psum:psum"),
    "propagation": ("\0provenance\0", "psum:psum"),
    "price": ("requests.main:main", "fsdp_tp:grad"),
    "evaluation": ("shardscope.inspector.evaluate", "psum:psum", "--validate", "--try", "0"),
    "trial of a script": ("\0script_trial\0", "failing.py"),
}
"""A part of the command line of the process of each phase, and the command that comes to it; tests/warm has servers."""


def command_lines(marked: bytes) -> dict[int, str]:
    """The command lines of living processes that have inherited a mark."""
    found = {}
    for pid, _, _ in guarding.by_proc():
        with suppress(OSError):
            if guarding._has(pid, marked):
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text()
    return found


@pytest.mark.parametrize("phase", sampled(PHASES, ("evaluation", "trial of a script")))
def test_each_process_ends_with_the_front(tmp_path: Path, phase: str) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    wanted, *command = PHASES[phase]
    mark = secrets.token_hex(8)
    front = subprocess.Popen(
        [sys.executable, "-m", "shardscope", "run", *command],
        cwd=tmp_path,
        env=os.environ | {guarding.MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + LONGEST_S
    while not any(wanted in line for line in command_lines(mark.encode()).values()):
        assert front.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    front.kill()
    front.wait()
    while left := command_lines(mark.encode()):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_processes_are_found_without_proc() -> None:
    """`ps` says of this process what Linux does."""
    own = (os.getpid(), os.getppid(), os.getpgrp())
    assert own in set(guarding.by_ps())
    assert own in set(guarding.by_proc())
