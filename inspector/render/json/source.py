"""Places in the user's source."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


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
