"""Places in the user's source."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...report import SourcePosition


class Frame(Struct, frozen=True):
    """One line of a Python stack; 0 where a line or column was not recorded."""

    file: str
    function: str
    line: int
    column: int


class Source(Struct, frozen=True):
    """Where something comes from: the innermost frame, and the whole stack from there outwards."""

    file: str | None
    line: int | None
    function: str | None
    stack: list[Frame]
    confidence: Literal["exact", "name", "shape", "none"]


def source_of(place: SourcePosition) -> Source:
    """A place in its JSON shape."""
    frame = place.frame
    return Source(
        file=place.file,
        line=place.line,
        function=frame.function if frame else None,
        stack=[Frame(each.file, each.function, each.line, each.column) for each in place.stack],
        confidence=place.confidence,
    )
