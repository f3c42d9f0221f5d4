"""How the programs of this folder say what is to be found in them; the tests read it from their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


class Programs(list[Callable[..., object]]):
    """Functions that one program calls one after the other, so that one capture is enough for all of them."""

    def found_by(self, *rules: str, **on: str) -> Callable[[F], F]:
        """Takes a function in: what finds it on every target, or, by its platform, what does on one of them.

        `found_by()` is for what only looks like a fault; `found_by("SS07", gpu="")` for one that GPUs' compiler mends.
        """

        def taken_in(function: F) -> F:
            self.append(function)
            return function

        return taken_in
