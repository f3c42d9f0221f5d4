"""Signals at random moments, and terminals that close."""

from __future__ import annotations

import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from .commands import ENDLESS, import_what_it_needs, run
from .outcome import MARK, clean, left_behind, wrong

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
SWEEP = "from shardscope.inspector.capture.scratch import Scratch; Scratch()"
LONGEST_S = 180.0
"""Seconds in which a command has to end: on a busy machine, several processes of JAX take minutes."""
AGAIN_S = 20.0
"""Seconds after which whoever pressed Ctrl-C does so again."""
ENDLESS_S = 8.0
"""Seconds in which what has no end gets a signal."""


def by_signals(folder: Path, commands: dict[str, Sequence[str]], moments: int) -> int:
    """Send each signal at random moments; print a line for each command and signal, and return how many did wrong.

    Every other command is a process from nothing, and the others are forks, which have imported everything.
    """
    before, bad, chance = {path.name for path in folder.iterdir()}, 0, random.Random(0)
    for name, command in commands.items():
        import_what_it_needs(folder, command)
        lengths = []
        for fresh in (True, False):
            started = time.monotonic()
            if name not in ENDLESS:
                _ended(folder, command, fresh, None, 600)
            lengths.append(time.monotonic() - started if name not in ENDLESS else ENDLESS_S)
        for number in (*SIGNALS, None):
            statuses: dict[int, int] = {}
            bad_before = bad
            for count in range(moments):
                clean(folder, before)
                fresh = count % 2 == 0
                moment = chance.uniform(0.05, lengths[not fresh] + (number is None))
                terminal = number is None or name in ENDLESS
                status, output, errors = _ended(folder, command, fresh, number, moment, terminal=terminal)
                statuses[status] = statuses.get(status, 0) + 1
                killed = status == -(number or signal.SIGHUP)  # before it could do anything, or by SIGKILL
                if number == signal.SIGKILL:
                    environment = os.environ | {MARK: "1"}
                    subprocess.run([sys.executable, "-c", SWEEP], env=environment, check=True)
                if problems := wrong(status, output, errors, left_behind(folder, before), killed):
                    bad += 1
                    print(f"  WRONG {name}: {_word(number)} after {moment:.2f} s: {problems}", flush=True)
            shown = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
            print(f"{name:16} {_word(number):18} {bad - bad_before} of {moments} wrong: {shown}", flush=True)
    return bad


def _word(number: signal.Signals | None) -> str:
    return "closed terminal" if number is None else number.name


def _ended(
    folder: Path,
    command: Sequence[str],
    fresh: bool,
    number: signal.Signals | None,
    moment: float,
    *,
    terminal: bool = False,
) -> tuple[int, str, str]:
    """The status, output and errors of a command that gets a signal after so many seconds, or loses its terminal."""
    out, err = (folder.parent / name for name in ("stdout", "stderr"))
    out.write_bytes(b"")
    err.write_bytes(b"")
    child, master = pty.fork() if terminal else (os.fork(), -1)
    if child == 0:
        try:
            _be(folder, command, fresh, None if terminal else (out, err))
        finally:  # of a signal before the command begins
            os._exit(130)
    moment, end, shown, signalled = time.monotonic() + moment, time.monotonic() + moment + LONGEST_S, b"", False
    ended = (0, 0)
    while not ended[0] and time.monotonic() < end:
        with suppress(OSError):  # it has ended
            if master >= 0 and select.select([master], [], [], 0)[0]:
                shown += os.read(master, 1 << 16)
        time.sleep(0.005)
        ended = os.waitpid(child, os.WNOHANG)
        if not ended[0] and not signalled and time.monotonic() > moment:
            signalled = True
            if number == signal.SIGINT and terminal:  # Ctrl-C goes to all of its processes; a screen may follow
                os.killpg(child, number)
                signalled, moment = False, time.monotonic() + AGAIN_S
            elif number is not None:
                os.kill(child, number)
            elif terminal:
                os.close(master)
                master = -1
    if master >= 0:
        os.close(master)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -1, "", f"Traceback\nno end after {LONGEST_S:.0f} s"
    errors = err.read_text(errors="replace") + shown.decode(errors="replace")
    return os.waitstatus_to_exitcode(ended[1]), out.read_text(errors="replace"), errors


def _be(folder: Path, command: Sequence[str], fresh: bool, files: tuple[Path, Path] | None) -> NoReturn:
    """Become the command."""
    os.chdir(folder)
    os.environ |= {MARK: "1", "COLUMNS": "120", "LINES": "40", "TERM": "xterm-256color"}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if files is not None:
        for descriptor, place in zip((1, 2), files, strict=True):
            os.dup2(os.open(place, os.O_WRONLY), descriptor)
    if fresh:
        os.execv(sys.executable, [sys.executable, "-m", "shardscope", *command])
    status = 99
    try:
        status = run(command)
    finally:
        import atexit

        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        atexit._run_exitfuncs()
        os._exit(status)
