"""The text of the user's source files: as it was captured, or as it lies on disk."""

from __future__ import annotations

import os
import stat
from functools import lru_cache

from ..parsers.source import Source
from .capture.model import Capture

LARGEST = 4 << 20
"""Bytes; a capture names files, and what it names must not fill the memory."""


def source_of(capture: Capture, file: str) -> Source | None:
    """The text of a file that a stack frame names; None where there is none to be had."""
    script = capture.script_text
    if script is not None and os.path.normpath(script.name) == os.path.normpath(file):
        return script
    return _on_disk(file)


@lru_cache(maxsize=32)
def _on_disk(file: str) -> Source | None:
    """A Python file that is there. Devices and pipes, which a crafted capture may name, are never opened."""
    if not file.endswith(".py"):
        return None
    try:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return None
        with open(file, "rb") as opened:
            return Source(file, opened.read(LARGEST))
    except (OSError, ValueError):
        return None
