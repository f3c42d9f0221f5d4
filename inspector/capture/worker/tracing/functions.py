"""Numbers of function objects."""

from __future__ import annotations

import weakref
from typing import Any


class FunctionNumbers:
    """Numbers that tell function objects apart, also those of which one is gone when the next is made."""

    def __init__(self) -> None:
        self._count = 0
        self._known: dict[int, tuple[int, Any]] = {}

    def of(self, function: Any) -> int:
        """The number of a function object; a new one for an object that was not seen before."""
        known = self._known.get(id(function))
        if known is not None and known[1]() is function:
            return known[0]
        try:
            reference: Any = weakref.ref(function)
        except TypeError:
            reference = lambda: function  # noqa: E731
        self._count += 1
        self._known[id(function)] = self._count, reference
        return self._count
