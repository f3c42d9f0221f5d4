"""Processor time of processes and all that they have started, where Linux says it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

PARENT, USER, SYSTEM = 1, 11, 12
"""Fields of /proc/PID/stat after the name of the command."""


def processor_seconds(pids: Iterable[int]) -> float | None:
    """Seconds of living processes and their descendants; None where the system does not say."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[PARENT])
        ticks[pid] = int(fields[USER]) + int(fields[SYSTEM])
    if not ticks:
        return None
    wanted = set(pids)
    return sum(count for pid, count in ticks.items() if _is_under(pid, wanted, parents)) / os.sysconf("SC_CLK_TCK")


def _is_under(pid: int, wanted: set[int], parents: dict[int, int]) -> bool:
    while pid not in wanted and pid in parents:
        pid = parents[pid]
    return pid in wanted
