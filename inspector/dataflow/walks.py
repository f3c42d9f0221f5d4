"""Walks along values, with what they passed through, what they ended at, and whether they saw everything."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Generic, TypeVar, cast

from .graph import AnyUse, Graph, Output
from .meaning import Does

V = TypeVar("V")
U = TypeVar("U", bound=AnyUse)

MAX_VALUES = 5_000
"""Values that one walk visits before it gives up."""


class Reach(Generic[V, U]):
    """The uses of a value behind operations of some classes.

    `steps` are the uses that were passed through, `ends` the others, `outputs` the program's results that were reached.
    It is `complete` if every use was followed to one of these.
    """

    def __init__(self) -> None:
        self.values: list[V] = []
        self.steps: list[U] = []
        self.ends: list[U] = []
        self.outputs: list[Output] = []
        self.complete = True

    @property
    def is_all(self) -> bool:
        """True if the ends are all that becomes of the values: there are some, and nothing is returned or unknown."""
        return self.complete and bool(self.ends) and not self.outputs


def forward(
    graph: Graph[V, U],
    starts: Iterable[V],
    through: Does,
    *,
    keeps: Callable[[U], bool] = lambda _: True,
    carried: bool = False,
    refused: Container[V] = (),
    limit: int = MAX_VALUES,
) -> Reach[V, U]:
    """Return what becomes of some values through operations of these classes, less those that a predicate refuses.

    Values that are `refused` are not followed; what loops carry is, where the graph leaves that open, if `carried`.
    """
    reach: Reach[V, U] = Reach()
    waiting = list(dict.fromkeys(starts))
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        reach.values.append(value)
        for use in graph.uses(value, carried=carried):
            onward: Iterable[V] = ()
            if use is None:
                reach.complete = False
            elif isinstance(use, Output):
                reach.outputs.append(use)
            elif not isinstance(use, AnyUse):
                onward = (use,)
            elif graph.does(cast("U", use)) & ~through or not keeps(cast("U", use)):
                reach.ends.append(cast("U", use))
            else:
                reach.steps.append(cast("U", use))
                onward = graph.after(cast("U", use))
            new = [each for each in onward if each not in seen and each not in refused]
            seen.update(new)
            waiting += new
        if len(seen) > limit:
            reach.complete = False
            break
    return reach
