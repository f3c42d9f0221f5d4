"""The screen in a terminal, from `run` to `q`."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cold, pytest.mark.skipif(sys.platform == "win32", reason="has no pseudoterminals")]

SCRIPT = """
import jax, jax.numpy as jnp
mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
fn = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P()))
inputs = (jnp.arange(4.0),)
"""

PATIENCE_S = 120

SIZE = {"COLUMNS": "120", "LINES": "40"}
"""Textual asks these before the terminal, and another test may have left others."""


class Terminal:
    """A command in a terminal of 40 lines, and what it has written there."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        command = [sys.executable, "-m", "shardscope", *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | SIZE | environment,
            start_new_session=True,
        )
        os.close(slave)
        self.written = ""

    def until(self, words: str) -> None:
        """Read until a text was written, whatever colours and movements are in it."""
        end = time.monotonic() + PATIENCE_S
        while words not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.written):
            assert time.monotonic() < end, self.written[-2000:]
            if not self._read():
                raise AssertionError(f"ended without {words!r}: {self.written[-2000:]}")

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def close(self) -> None:
        os.close(self._master)

    def end(self) -> int:
        """The exit status."""
        while self._read():
            pass
        os.close(self._master)
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 1.0)[0]:
            return self.process.poll() is None
        try:
            piece = os.read(self._master, 1 << 16)
        except OSError:  # what Linux says when the other end is closed
            return False
        self.written += piece.decode("utf-8", "replace")
        return bool(piece)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return f"{path}:fn"


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    """An editor that says what it is given, and ends at once."""
    path = tmp_path / "edit"
    path.write_text('#!/bin/sh\necho edits "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.once
def test_from_run_to_quit(script: str, editor: Path) -> None:
    terminal = Terminal("run", script, TERM="xterm-256color", EDITOR=f"{editor} --wait", VISUAL="")
    terminal.until("no findings")
    terminal.press("e")
    terminal.until(f"edits --wait +4 {script.removesuffix(':fn')}")
    terminal.press("3")
    terminal.until("Collectives in the compiled program: 1")
    terminal.press("q")
    assert terminal.end() == 0
    assert "\x1b[?1049l" in terminal.written  # the terminal is as it was


@pytest.mark.once
def test_a_terminal_that_vanishes_ends_it(script: str) -> None:
    """Nobody sends a signal to what has no controlling terminal."""
    terminal = Terminal("run", script, TERM="xterm-256color")
    terminal.until("no findings")
    terminal.close()
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as under nohup
    assert terminal.process.wait(PATIENCE_S) == 128 + (signal.SIGTERM if ignored else signal.SIGHUP)


@pytest.mark.once
def test_a_dumb_terminal_gets_the_text(script: str) -> None:
    terminal = Terminal("run", script, "--no-live", TERM="dumb")
    assert terminal.end() == 0
    assert "Communication per device per step" in terminal.written
    assert "\x1b[?1049h" not in terminal.written
