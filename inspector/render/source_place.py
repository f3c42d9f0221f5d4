"""A place in the user's files, in short."""

from __future__ import annotations

from ..report import SourcePlace


def place_text(source: SourcePlace) -> str:
    """`file.py:12`, without the folder."""
    frame = source.frame
    return "" if frame is None else f"{frame.file.rpartition('/')[2]}:{frame.line}"
