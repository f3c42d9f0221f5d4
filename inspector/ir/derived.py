"""Results of analyses that belong to a value: made on first use, kept by that value, and freed with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class Owner(Protocol):
    """A value that never changes, and keeps what analyses have derived from it."""

    @property
    def derived(self) -> dict[Hashable, object]:
        """The results by analysis and arguments."""


O = TypeVar("O", bound=Owner)  # noqa: E741
P = ParamSpec("P")
T = TypeVar("T")

_NOTHING = object()


def derived(analysis: Callable[Concatenate[O, P], T]) -> Callable[Concatenate[O, P], T]:
    """An analysis of an owner that is done once for each of its further arguments, which are compared as keys are."""

    @wraps(analysis)
    def kept(owner: O, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (analysis, args, *kwargs.items())
        found = owner.derived.get(key, _NOTHING)
        if found is _NOTHING:
            found = owner.derived[key] = analysis(owner, *args, **kwargs)
        return found  # type: ignore[return-value]

    return kept  # type: ignore[return-value]
