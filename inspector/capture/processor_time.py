"""Processor time of processes and all that they have started, where Linux says it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PARENT, USER, SYSTEM = 1, 11, 12
"""Fields of /proc/PID/stat after the name of the command."""


def processor_seconds(pids: Iterable[int]) -> float | None:
    """Seconds of living processes and their descendants; None where the system does not say."""
    stats = _stats()
    if not stats:
        return None
    ticks = (int(stats[pid][USER]) + int(stats[pid][SYSTEM]) for pid in _descendants(pids, stats))
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def ready_seconds(pids: Iterable[int]) -> Mapping[Path, float]:
    """Seconds in which each of their threads ran or could have run: on a busy machine they wait for a processor."""
    found = {}
    for pid in _descendants(pids, _stats()):
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                ran, waited, *_ = path.read_text().split()
            except (OSError, ValueError):
                continue
            found[path] = (int(ran) + int(waited)) / 1e9
    return found


def _stats() -> Mapping[int, list[str]]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
    return found


def _descendants(pids: Iterable[int], stats: Mapping[int, list[str]]) -> Iterator[int]:
    wanted = set(pids)
    return (pid for pid in stats if _is_under(pid, wanted, stats))


def _is_under(pid: int, wanted: set[int], stats: Mapping[int, list[str]]) -> bool:
    while pid not in wanted and pid in stats:
        pid = int(stats[pid][PARENT])
    return pid in wanted
