"""Where things come from in the user's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...parsers.source_frames import Frame

Confidence = Literal["exact", "name", "shape", "none"]


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where in the user's files something comes from; `stack` is innermost first.

    `confidence`: `exact` where the compiler recorded the position for this very operation, `name` where it was found
    through a name, `shape` where only types and neighbours agree, `none` where nothing is known (and `stack` is empty).
    """

    stack: tuple[Frame, ...] = ()
    confidence: Confidence = "none"

    @property
    def frame(self) -> Frame | None:
        """The innermost frame."""
        return self.stack[0] if self.stack else None

    @property
    def file(self) -> str | None:
        """The file of the innermost frame."""
        return self.stack[0].file if self.stack else None

    @property
    def line(self) -> int | None:
        """The line of the innermost frame, from 1."""
        return self.stack[0].line if self.stack else None
