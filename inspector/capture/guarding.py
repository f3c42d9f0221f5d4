"""The guardian of a process, executed as a file: `guarding.py FRONT PLACE MARK`.

Standard input has the processes to watch, one on a line, until one of the words, or the end of the front process.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

DISMISSED = b"dismissed\n"
"""The word of a front process of which all has ended that was watched."""

CLOSED = b"closed\n"
"""The word of a front process that goes on, and wants all to end that is watched."""

MARK = "SHARDSCOPE_GUARDED"
"""The environment variable with the marks of the guardians of a process."""

ENDING_S = 10.0
"""Seconds for which it looks for processes: those that are being ended may have started others meanwhile."""

PARTING_S = 2.0
"""Seconds for which it waits for the end of a front process that has closed its pipe."""

LOOK_S = 0.02

NAMED = f"{MARK}=".encode()

Found = tuple[int, int, int]
"""A process, its parent and its group."""


def main(front: int, place: str, mark: bytes) -> None:
    """Wait for the end of the front process; then end what it has left, and remove the temporary folders in `place`."""
    roots = set[int]()
    parting = PARTING_S
    for line in sys.stdin.buffer:
        if line == DISMISSED:
            return
        if line == CLOSED:
            parting = 0.0
            break
        roots.add(int(line))
    deadline = time.monotonic() + ENDING_S
    while (left := _left(roots, mark)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)
    # A process that is ending closes its pipes a moment before its children get another parent.
    deadline = time.monotonic() + parting
    while os.getppid() == front and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    if os.getppid() != front:
        _sweep(place)


def _left(roots: set[int], mark: bytes) -> set[int]:
    """Running processes among the roots, their groups and descendants, and those with the mark in their environment."""
    found = list(by_proc() if os.path.isdir("/proc/self") else by_ps())
    wanted = {pid for pid, _, group in found if pid in roots or group in roots or _has(pid, mark)}
    size = 0
    while size != len(wanted):
        size = len(wanted)
        wanted |= {pid for pid, parent, _ in found if parent in wanted}
    return wanted - {os.getpid()}


def _has(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(each.startswith(NAMED) and mark in each for each in file.read().split(b"\0"))
    except OSError:  # it has ended, is somebody else's, or the system does not say it
        return False


def by_proc() -> Iterator[Found]:
    """Running processes, from Linux's /proc."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            state, parent, group, *_ = file.read().rpartition(b")")[2].split()
            if state != b"Z":
                yield int(name), int(parent), int(group)


def by_ps() -> Iterator[Found]:
    """Running processes, from `ps`, on every other system."""
    with os.popen("ps -axo pid=,ppid=,pgid=,stat=") as listed:
        for line in listed:
            pid, parent, group, state = line.split()
            if not state.startswith("Z"):
                yield int(pid), int(parent), int(group)


def _sweep(place: str) -> None:
    """Sweep as the next start does, without the package, which need not be installed for `python -I -S`."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scratch.py")
    spec = importlib.util.spec_from_file_location("scratch", path)
    assert spec is not None
    assert spec.loader is not None
    scratch = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scratch)
    scratch.sweep(place)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], os.fsencode(sys.argv[3]))
