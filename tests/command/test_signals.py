"""Signals end a command as Ctrl-C does: no process, no folder, no worktree stays; what SIGKILL leaves goes later."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from shardscope.inspector.capture.scratch import NOTE, PREFIX, Scratch

from tests.capture.test_isolation import alive

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

BUSY = """
import os, pathlib, subprocess, time
def fn(): ...
helper = subprocess.Popen(["sleep", "1000"])
place = pathlib.Path(os.environ["PLACE"])
place.with_name("writing").write_text(f"{os.getpid()} {helper.pid}")
place.with_name("writing").rename(place)
time.sleep(1000)
"""

TEXT = "HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a script that never ends."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "busy.py").write_text(BUSY)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(folder)]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    (tmp_path / "temporary").mkdir()
    return folder


@pytest.fixture
def front(repository: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`diff --git`, which has a process, two folders and a worktree, while the script runs."""
    place = repository.parent / "pids"
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the command ignores it, as it should
    child = subprocess.Popen(
        [sys.executable, "-m", "shardscope", "diff", "busy.py:fn", "--git", "HEAD"],
        cwd=repository,
        env=os.environ | {"TMPDIR": str(repository.parent / "temporary"), "PLACE": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGHUP, ignored)
    for _ in range(1200):
        if place.exists() or child.poll() is not None:
            break
        time.sleep(0.05)
    assert place.exists(), child.communicate()
    yield child
    child.kill()
    child.communicate()
    for pid in map(int, place.read_text().split()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def worktrees(repository: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "worktree", "list", "--porcelain"], cwd=repository, capture_output=True, text=True, check=True
    )
    return [line for line in listed.stdout.splitlines() if line.startswith("worktree")]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_nothing_is_left(repository: Path, front: subprocess.Popen[bytes], number: signal.Signals, status: int) -> None:
    assert len(worktrees(repository)) == 2
    front.send_signal(number)
    assert front.communicate(timeout=60) == (b"", b"")
    assert front.returncode == status
    assert not any(map(alive, map(int, (repository.parent / "pids").read_text().split())))
    assert not list((repository.parent / "temporary").iterdir())
    assert len(worktrees(repository)) == 1


def test_the_next_start_sweeps(
    repository: Path, front: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = repository.parent / "temporary"
    strangers = temporary / f"{PREFIX}link"
    strangers.symlink_to(repository)
    front.kill()
    front.wait()
    assert len(list(temporary.iterdir())) == 3
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with Scratch() as mine:
        assert set(temporary.iterdir()) == {mine, strangers}
        assert len(worktrees(repository)) == 1
        beside = [sys.executable, "-c", "from shardscope.inspector.capture.scratch import Scratch; Scratch()"]
        subprocess.run(beside, env=os.environ | {"TMPDIR": str(temporary)}, check=True)
        assert mine.is_dir(), "a folder that is in use was swept"
    assert (repository / "busy.py").exists()


def test_worktrees_of_others_stay(repository: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "worktree", "add", "-q", str(tmp_path / "own")], cwd=repository, check=True)
    with Scratch() as folder:
        (folder / NOTE).write_text(str(repository / ".git"))
    assert len(worktrees(repository)) == 2


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # a program is executed in the place of the fork
@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_is_closed(tmp_path: Path, ignored: bool) -> None:
    """The screen ends, whether the end of the terminal is signalled or only seen."""
    (tmp_path / "text.hlo").write_text(TEXT)
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40", "TMPDIR": str(tmp_path)}
        os.execv(sys.executable, [sys.executable, "-m", "shardscope", "open", str(tmp_path / "text.hlo")])
    shown = b""
    while b"parameter" not in shown:
        shown += os.read(terminal, 1 << 16)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (143 if ignored else 129)
    assert [path.name for path in tmp_path.iterdir()] == ["text.hlo"]


HANGING = """
import threading, shardscope.signals
shardscope.signals.LONGEST_S = 0.1
with shardscope.signals.stopping():
    try:
        print(flush=True)
        threading.Event().wait()
    finally:
        threading.Event().wait()
"""


def test_what_never_ends_is_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read(1)
    child.terminate()
    assert child.wait(60) == 143
    child.stdout.close()


SWALLOWING = """
import signal, sys
from shardscope import cli
def run(arguments):
    try:
        signal.raise_signal(signal.SIGTERM)
    except SystemExit:
        {}
cli._run = run
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("then", ["return 0", "return 5", "raise ValueError"])
def test_what_swallows_the_signal(then: str) -> None:
    """Extension modules do, while they ask an object for an attribute, and take it for one without."""
    ended = subprocess.run([sys.executable, "-c", SWALLOWING.format(then)], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (143, b"")


ENDING = """
import atexit, signal, sys
from shardscope import cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, also in the background of a shell
atexit.register(signal.raise_signal, signal.SIGINT)
sys.argv[1:] = ["explain", "psum"]
sys.exit(cli.command())
"""
BEGINNING = """
import builtins, signal, sys
from shardscope import cli
def importing(name, *rest, import_=builtins.__import__):
    if name == sys.argv[1]:
        signal.raise_signal(signal.SIGINT)
    return import_(name, *rest)
builtins.__import__ = importing
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(cli.command())
"""


@pytest.mark.parametrize("program", [ENDING, BEGINNING])
def test_an_interrupt_while_python_begins_and_ends(program: str) -> None:
    ended = subprocess.run([sys.executable, "-c", program, "shardscope.signals"], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


def test_an_interrupt_while_a_command_is_imported() -> None:
    ended = subprocess.run([sys.executable, "-c", BEGINNING, "shardscope.arguments"], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, b"")


INTERRUPTED = """
import signal, sys
from textual.drivers.linux_driver import LinuxDriver
from shardscope.cli import main
def disable_input(driver):
    signal.raise_signal(signal.SIGTERM)
LinuxDriver.disable_input = disable_input
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # a program is executed in the place of the fork
def test_a_signal_while_the_screen_ends(tmp_path: Path) -> None:
    """The thread that reads the keys ends even so."""
    (tmp_path / "text.hlo").write_text(
        "HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40", "TMPDIR": str(tmp_path)}
        os.execv(sys.executable, [sys.executable, "-c", INTERRUPTED, "open", str(tmp_path / "text.hlo")])
    shown = b""
    while b"parameter" not in shown:
        shown += os.read(terminal, 1 << 16)
    os.kill(child, signal.SIGTERM)
    with suppress(OSError):  # it is closed by the end of all that have it
        while os.read(terminal, 1 << 16):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 143
    os.close(terminal)
