"""What a command must not do at its end, and must not leave."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 129, 130, 143}

_BEGAN = re.compile(r'cli\.py", line \d+, in \w')
"""A frame of ours in a traceback: before, Python itself is starting, and says so at Ctrl-C."""

MARK = f"SHARDSCOPE_FAULTS_{os.getpid()}"


def left_behind(folder: Path, before: set[str]) -> Iterator[str]:
    """What is there, and was not before: files, temporary folders, worktrees, processes."""
    for _ in range(100):
        processes = list(_processes(folder))
        if not processes:
            break
        time.sleep(0.05)
    yield from (f"process {pid}" for pid in processes)
    yield from (f"temporary {path.name}" for path in (folder / "tmp").iterdir())
    names = {path.name for path in folder.iterdir()}
    yield from (f"file {name}" for name in sorted(names - before - {"out", "saved", "other"}))
    if (worktrees := folder / ".git" / "worktrees").exists():
        yield from (f"worktree {path.name}" for path in worktrees.iterdir())


def _processes(folder: Path) -> Iterator[int]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with suppress(OSError):
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                marked = MARK.encode() in (place / "environ").read_bytes()
                if state != "Z" and (marked or folder.parent in Path(os.readlink(place / "cwd")).parents):
                    yield int(place.name)


def wrong(status: int, output: str, errors: str, left: Iterable[str], killed: bool = False) -> list[str]:
    """What must not be, in words."""
    found = list(left)
    if not killed and status not in DOCUMENTED:
        found.append(f"status {status}")
    began = _BEGAN.search(errors) or not errors.rstrip().endswith("KeyboardInterrupt")
    if ("Traceback" in errors or "Exception ignored" in errors) and began and '/script.py"' not in errors:
        found.append(f"traceback: {errors.strip().splitlines()[-1]}")
    if (
        not killed
        and status
        and not (
            errors.strip() or '"failure"' in output or re.search("^(Stopped while|Ended by) ", output, re.MULTILINE)
        )
        and status not in (1, 3)
        and status < 128
    ):
        found.append("no word")
    return found


def clean(folder: Path, before: set[str]) -> None:
    """Remove what a command has left, and what it wrote."""
    for path in [*(folder / "tmp").iterdir(), *(path for path in folder.iterdir() if path.name not in before)]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / ".git" / "worktrees", ignore_errors=True)
    for pid in _processes(folder):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
