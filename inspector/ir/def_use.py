"""Definitions and uses of values, in whichever language a program is written, and the walks along them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

V = TypeVar("V", bound=Hashable)
O = TypeVar("O", bound=Hashable)  # noqa: E741


class DefUse(Protocol[V, O]):
    """The values of one body (a jaxpr, a function or a block of MLIR, a computation of HLO) and its operations."""

    def definition(self, value: V, /) -> O | None:
        """The operation that makes a value; None for what the body is given."""

    def operands(self, operation: O, /) -> Sequence[V | None]:
        """The values that an operation takes; None for one that is not known."""

    def results(self, operation: O, /) -> Sequence[V]:
        """The values that an operation makes."""

    def users_of(self, values: Collection[V], /) -> Mapping[V, Sequence[O]]:
        """For each of some values the operations that take it, in text order."""


def forward(
    graph: DefUse[V, O], values: Collection[V], steps: int, passes: Callable[[O], bool]
) -> Iterator[Mapping[V, Sequence[O]]]:
    """The users of some values, then those of what the users that pass them on make of them, and so on."""
    seen: set[O] = set()
    for _ in range(steps):
        if not values:
            return
        users = graph.users_of(values)
        yield users
        onward = dict.fromkeys(each for value in values for each in users[value] if each not in seen and passes(each))
        seen.update(onward)
        values = tuple(dict.fromkeys(result for each in onward for result in graph.results(each)))


def near(graph: DefUse[V, O], start: O, steps: int, most: int) -> list[O]:
    """Operands of operands, users of users, and the operands of those that are a step away: nearer ones first."""
    found, edge = {start: None}, [start]
    for _ in range(steps):
        if len(found) >= most:
            break
        users = graph.users_of([value for each in edge for value in graph.results(each)])
        operands = (value for each in edge for value in graph.operands(each) if value is not None)
        reached = [
            *(made for value in operands if (made := graph.definition(value)) is not None),
            *(user for each in edge for value in graph.results(each) for user in users[value]),
        ]
        edge = []
        for each in reached:
            if each not in found and len(found) < most:
                found[each] = None
                edge.append(each)
    return list(found)
