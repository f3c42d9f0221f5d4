"""Positions in the user's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from ...parsers.source import Frame

Confidence = Literal["exact", "name", "shape", "none"]


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Position in the user's files that something comes from; `stack` is innermost first.

    `confidence`: `exact` where the compiler recorded the position for this very operation, `name` where it was found
    through a name, `shape` where only types and neighbours agree, `none` where nothing is known (and `stack` is empty).
    """

    stack: tuple[Frame, ...] = ()
    confidence: Confidence = "none"

    @classmethod
    def exact(cls, stack: tuple[Frame, ...]) -> SourcePosition:
        """A stack that was recorded for the very operation; no position where it is empty."""
        return cls(stack, "exact" if stack else "none")

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

    @property
    def function(self) -> str | None:
        """The function of the innermost frame."""
        return self.stack[0].function if self.stack else None

    def text(self, script: str | None = None) -> str:
        """`model.py:8`, or `line 8` in `script`; empty where no line is known."""
        frame = self.frame
        if frame is None:
            return ""
        own = script is not None and _same_file(frame.file, script)
        return f"line {frame.line}" if own else file_and_line(frame.file, frame.line)

    def function_text(self, script: str | None = None) -> str:
        """`model.py:8 step`: the position and its function."""
        return f"{self.text(script)} {self.frame.function}".rstrip() if self.frame else ""


def file_and_line(file: str, line: int) -> str:
    """`model.py:8`, without the folder; the file alone where no line is known."""
    name = os.path.basename(file)
    return f"{name}:{line}" if line else name


def _same_file(one: str, other: str) -> bool:
    return os.path.basename(one) == os.path.basename(other) and (
        os.path.abspath(one) == os.path.abspath(other) or not os.path.isabs(one)
    )
