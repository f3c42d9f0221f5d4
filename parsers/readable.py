"""Reading what may be in no known spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .errors import ParseError

T = TypeVar("T")


def readable(read: Callable[[], T]) -> T | None:
    """What is read, or None for a text in no known spelling: what holds it is still shown."""
    try:
        return read()
    except ParseError:
        return None
