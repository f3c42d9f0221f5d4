"""The user's source files: as they were captured, or as they are on disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable
from dataclasses import dataclass, field

from ...parsers.source import Source

MAX_BYTES = 4 << 20
"""A capture names files, and what it names must not fill the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceFile(Source):
    """The text of a file; `captured` where it was recorded, and not read from disk."""

    captured: bool = False
    derived: dict[Hashable, object] = field(default_factory=dict, repr=False)


def file_on_disk(name: str) -> SourceFile | None:
    """A Python file that is there. Devices and pipes, which a crafted capture may name, are never opened."""
    if not name.endswith(".py"):
        return None
    try:
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        with open(name, "rb") as opened:
            return SourceFile(name, opened.read(MAX_BYTES))
    except (OSError, ValueError):
        return None
