"""Memory available to this process: the machine's, less what control groups and limits withhold."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
_CACHED = re.compile(r"^(?:total_)?inactive_file (\d+)", re.MULTILINE)
"""Bytes of files that a control group counts as used, and gives back when they are needed."""


def available_bytes() -> int | None:
    """Return the memory that can be had without swapping, where the system says."""
    return min((*_of_machine(), *_of_groups(), *_of_limits()), default=None)


def _of_machine() -> Iterator[int]:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(Path("/proc/meminfo")), re.MULTILINE)
    if found:
        yield int(found[1]) * 1024


def _of_groups() -> Iterator[int]:
    """Memory left in the control group of this process and in its parents, of either version."""
    for line in _text(OWN_GROUPS).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers in ("", "memory"):
            root = GROUPS / controllers
            names = (
                ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
            )
            # In a container the path may be the host's, and only the root be there.
            for group in (PurePosixPath(path), *PurePosixPath(path).parents):
                folder = root / str(group).lstrip("/")
                most, used = (_text(folder / name).strip() for name in names)
                if most.isdigit() and used.isdigit():
                    cached = _CACHED.findall(_text(folder / "memory.stat"))
                    yield max(int(most) - int(used) + (int(cached[-1]) if cached else 0), 0)


def _of_limits() -> Iterator[int]:
    """Memory left under `ulimit -v` and `ulimit -d`."""
    pages = dict(enumerate(_text(Path("/proc/self/statm")).split()))
    for limit, column in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY:
            yield max(most - int(pages.get(column, 0)) * resource.getpagesize(), 0)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
