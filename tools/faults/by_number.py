"""The n-th call of the system fails, for every n."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .calls import AUDITED, WRAPPED, Faults, opened
from .commands import import_what_it_needs, run
from .outcome import MARK, clean, left_behind, wrong

MAX_S = 600
"""Seconds that a command may take: on a busy machine, several processes of JAX need minutes to start."""


def run_forked(faults: Faults, folder: Path, command: Sequence[str], fault: tuple[str, int, int]) -> tuple[bool, Any]:
    """Whether the fault came to pass, and status, output and errors of the command."""
    out, err, hit = (folder.parent / name for name in ("stdout", "stderr", "hit"))
    hit.write_bytes(b"")
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.chdir(folder)
            os.environ[MARK] = "1"
            for descriptor, place in ((1, out), (2, err)):
                os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            result = os.open(hit, os.O_WRONLY)
            sys.stdout, sys.stderr = (opened(number, "w", closefd=False) for number in (1, 2))
            faults.arm(*fault)
            status = run(command)
            number = faults.left
            faults.left = -1
            sys.stderr.flush()
            os.write(result, b"%d" % number)
        finally:
            import atexit

            atexit._run_exitfuncs()
            os._exit(status)
    deadline = time.monotonic() + MAX_S
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True, (-1, "", f"Traceback\nno end after {MAX_S} s")
        time.sleep(0.005)
    status = os.waitstatus_to_exitcode(ended[1])
    reached = hit.read_bytes() == b"0"
    return reached, (status, out.read_text(errors="replace"), err.read_text(errors="replace"))


def by_number(folder: Path, commands: dict[str, Sequence[str]], numbers: range) -> int:
    """Print a line for each command and kind of call; returns how many did wrong."""
    faults = Faults()
    before, bad = {path.name for path in folder.iterdir()}, 0
    for name, command in commands.items():
        import_what_it_needs(folder, command)
        clean(folder, before)
        for kind, codes in {**AUDITED, **WRAPPED}.items():
            for code in codes:
                statuses: dict[int, int] = {}
                for number in numbers:
                    hit, (status, output, errors) = run_forked(faults, folder, command, (kind, number, code))
                    if not hit:
                        break
                    statuses[status] = statuses.get(status, 0) + 1
                    if problems := wrong(status, output, errors, left_behind(folder, before)):
                        bad += 1
                        print(f"  WRONG {name}: {kind} {number} {errno.errorcode[code]}: {problems}", flush=True)
                    clean(folder, before)
                if statuses:
                    shown = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
                    print(f"{name:16} {kind:18} {errno.errorcode[code]:8} {shown}", flush=True)
    return bad
