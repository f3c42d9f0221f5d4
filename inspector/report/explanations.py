"""Why a function does not trace, and what was said about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..capture.model import Message
from .findings import Fix
from .position import SourcePosition


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One step of how a value came to be what it is: in words, and where."""

    what: str
    source: SourcePosition = field(default_factory=SourcePosition)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a function does not trace: in short, how it came to that, and what may fix it."""

    title: str
    steps: tuple[StoryStep, ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """What the compiler or JAX said, what it is `about`, and where that stands in the user's source."""

    message: Message
    about: str | None = None
    source: SourcePosition = field(default_factory=SourcePosition)
