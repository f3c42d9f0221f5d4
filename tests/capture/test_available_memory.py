"""Memory that a process may still take: the least of what the machine, its control groups, and its limits leave."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest
from shardscope.inspector.capture.protocol import memory

GROUPS_OF: dict[str, tuple[dict[str, str], list[int]]] = {
    # Files as in the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
    "0::/a/b\n": (
        {
            "a/b/memory.max": "1000\n",
            "a/b/memory.current": "700\n",
            "a/b/memory.stat": "anon 5\ninactive_file 50\nactive_file 9\n",
            "a/memory.max": "max\n",
            "a/memory.current": "5\n",
            "memory.max": "400\n",
            "memory.current": "500\n",
        },
        [350, 0],
    ),
    "3:cpu:/x\n4:memory:/x\n": (
        {
            "memory/x/memory.limit_in_bytes": "10\n",
            "memory/x/memory.usage_in_bytes": "4\n",
            "memory/x/memory.stat": "inactive_file 1\ntotal_inactive_file 3\n",
            "cpu/x/memory.max": "1\n",
            "cpu/x/memory.current": "1\n",
            "x/memory.max": "1\n",
            "x/memory.current": "1\n",
        },
        [9],
    ),
    "0::/c\n": ({"c/memory.max": "10", "c/memory.current": "4"}, [6]),
    "0::/d:e\n": ({"d:e/memory.max": "10", "d:e/memory.current": "3"}, [7]),
    "0\n": ({"memory.max": "10", "memory.current": "2"}, [8]),
    "": ({"memory.max": "1", "memory.current": "1"}, []),
}


@pytest.mark.parametrize("own", GROUPS_OF)
def test_what_control_groups_leave(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, expected = GROUPS_OF[own]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    assert list(memory._of_groups()) == expected


@pytest.mark.parametrize(("limit", "field"), [(resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")])
def test_what_ulimit_leaves(limit: int, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel counts it in another file too."""
    most = 1 << 44
    limits = {limit: (most, most)}
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda name: limits.get(name, unlimited))
    (left,) = memory._of_limits()
    status = Path("/proc/self/status").read_text()
    used = int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024  # type: ignore[index]
    assert abs(most - left - used) < 16 << 20
    limits[limit] = (1, 1)
    assert list(memory._of_limits()) == [0]


def test_what_the_machine_has() -> None:
    (available,) = memory._of_machine()
    total = resource.getpagesize() * os.sysconf("SC_PHYS_PAGES")
    assert total / 1000 < available <= total


MACHINE = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:      3 kB\n"}
GROUP = {"own": "0::/\n", "memory.max": "2100\n", "memory.current": "100\n"}
STATM = {"proc/self/statm": "2 1 1 1 0 1 0\n"}
PAGE = resource.getpagesize()


@pytest.mark.parametrize(
    ("files", "limits", "available"),
    [
        ({}, {}, None),
        (MACHINE, {}, 3 * 1024),
        (GROUP, {}, 2000),
        (MACHINE | GROUP, {}, 2000),
        (MACHINE, {resource.RLIMIT_AS: 1000}, 1000),
        (MACHINE, {resource.RLIMIT_DATA: 1000}, 1000),
        (MACHINE | STATM, {resource.RLIMIT_AS: 2 * PAGE + 7}, 7),
        (MACHINE | STATM, {resource.RLIMIT_DATA: PAGE + 7}, 7),
        (MACHINE | GROUP | STATM, {resource.RLIMIT_AS: 2 * PAGE + 7, resource.RLIMIT_DATA: PAGE + 6}, 6),
        (MACHINE | STATM, {resource.RLIMIT_AS: 1}, 0),
    ],
)
def test_the_least_of_what_is_said(
    files: dict[str, str],
    limits: dict[int, int],
    available: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a system that does not say something, the rest counts; of one that says nothing, nothing is known."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "Path", lambda name: tmp_path / name.lstrip("/"))
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(resource, "getrlimit", lambda name: (limits.get(name, resource.RLIM_INFINITY),) * 2)
    assert memory.available_bytes() == available
