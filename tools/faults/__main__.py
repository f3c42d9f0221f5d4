"""Faults by number, as SQLite tests for them: the n-th call of the system fails, for every n, in every command.

    python -m tools.faults [COMMAND…]           calls that fail, signals at random moments
    python -m tools.faults --fast               commands that capture nothing, and no signals

A command is run with everything imported, in a fork that fails at its n-th open, write, read, fork, rename, … with
ENOSPC, EMFILE, EIO or EAGAIN. It has to end with a documented exit status, without a traceback, and leave nothing:
no process, no temporary folder, no worktree. The last line of standard error says why, or the result is complete.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from .by_number import by_number
from .by_signals import by_signals
from .commands import ENDLESS, FAST, SLOW, prepare
from .replay import record


def main() -> int:
    """Try all; returns 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help=f"of {', '.join([*FAST, *SLOW, *ENDLESS])}")
    parser.add_argument("--fast", action="store_true", help="only commands that capture nothing, without signals")
    parser.add_argument("--only", choices=("numbers", "signals"), help="one of the two")
    parser.add_argument("--first", type=int, default=1, help="the lowest number")
    parser.add_argument("--step", type=int, default=1, help="from one number to the next")
    parser.add_argument("--most", type=int, default=200, help="the highest number")
    parser.add_argument("--moments", type=int, default=10, help="of each signal")
    options = parser.parse_args()
    chosen = FAST if options.fast else {**FAST, **SLOW, **ENDLESS}
    chosen = {name: command for name, command in chosen.items() if not options.commands or name in options.commands}
    parent = tempfile.mkdtemp(prefix="faults-")  # no TemporaryDirectory: forks would remove it when they end
    try:
        folder = Path(parent, "work")
        (folder / "tmp").mkdir(parents=True)
        prepare(folder)
        record(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        bad = 0
        if not options.fast and options.only != "numbers":
            bad += by_signals(folder, chosen, options.moments)
        if options.only != "signals":
            ending = {name: command for name, command in chosen.items() if name not in ENDLESS}
            bad += by_number(folder, ending, range(options.first, options.most + 1, options.step))
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    print(f"{bad} wrong")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
