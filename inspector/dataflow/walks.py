"""Walks along values, with what they passed through, what they ended at, and whether they saw everything."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Generic, TypeVar, cast

from .graph import AnyUse, Graph, Output
from .meaning import Does

V = TypeVar("V")
U = TypeVar("U", bound=AnyUse)
T = TypeVar("T")

MAX_VALUES = 5_000
"""Values that one walk visits before it gives up."""


class Reach(Generic[V, U]):
    """The uses of a value behind operations of some classes.

    `steps` are the uses that were passed through, `ends` the others, `outputs` the program's results that were reached.
    It is `complete` if every use was followed to one of these; it `gave_up` if there were too many values.
    """

    def __init__(self) -> None:
        self.values: list[V] = []
        self.steps: list[U] = []
        self.ends: list[U] = []
        self.outputs: list[Output] = []
        self.complete = True
        self.gave_up = False

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
            elif graph.does(cast("U", use)) not in through or not keeps(cast("U", use)):
                reach.ends.append(cast("U", use))
            else:
                reach.steps.append(cast("U", use))
                onward = graph.after(cast("U", use))
            new = [each for each in onward if each not in seen and each not in refused]
            seen.update(new)
            waiting += new
        if len(seen) > limit:
            reach.complete, reach.gave_up = False, True
            break
    return reach


class Ends(Generic[V, U, T]):
    """Descriptions, by a function, of the program's results, and of uses behind operations of some classes, less those
    that a predicate refuses.

    An end whose description has one that is `decisive` makes the others unknown: it is all that is said of the values
    that reach it.
    """

    def __init__(
        self,
        graph: Graph[V, U],
        through: Does,
        describe: Callable[[U | Output | None], Iterable[T]],
        keeps: Callable[[U], bool] = lambda _: True,
        decisive: Iterable[T] = (),
    ) -> None:
        self._graph = graph
        self._through = through
        self._keeps = keeps
        self._describe = describe
        self._decisive = frozenset(decisive)
        self._of: dict[V, frozenset[T]] = {}

    def of(self, value: V) -> frozenset[T]:
        """Return the descriptions of all ends of a value, and that of None where a use cannot be followed."""
        if value not in self._of:
            self._visit(value)
        return self._of[value]

    def _visit(self, start: V) -> None:
        """Tarjan's algorithm: values that reach each other, through a loop, have the same ends."""
        lowest = {start: 0}
        numbers = dict(lowest)
        open_values = [start]
        described: dict[V, set[T]] = {start: set()}
        path = [(start, self._onward(start, described[start]))]
        while path:
            value, onward = path[-1]
            after = next(onward, None)
            ends = self._of.get(after) if after is not None else frozenset(described[value])
            if ends is not None and not ends.isdisjoint(self._decisive):
                self._of.update(dict.fromkeys(open_values, ends))  # all of these reach what the path ends at
                return
            if after is None:
                path.pop()
                if lowest[value] == numbers[value]:
                    members = [open_values.pop()]
                    while members[-1] != value:
                        members.append(open_values.pop())
                    together = frozenset[T]().union(*(described.pop(each) for each in members))
                    self._of.update(dict.fromkeys(members, together))
                if path:
                    before = path[-1][0]
                    lowest[before] = min(lowest[before], lowest[value])
                    described[before] |= self._of[value] if value in self._of else described[value]
            elif after in self._of:
                described[value] |= self._of[after]
            elif after in numbers:
                lowest[value] = min(lowest[value], numbers[after])
            else:
                numbers[after] = lowest[after] = len(numbers)
                open_values.append(after)
                described[after] = set()
                path.append((after, self._onward(after, described[after])))

    def _onward(self, value: V, described: set[T]) -> Iterator[V]:
        """Return the values that are made of a value, with its ends described: one of them may be decisive."""
        onward: list[V] = []
        for use in self._graph.uses(value):
            if isinstance(use, AnyUse) and not self._is_end(taken := cast("U", use)):
                onward += self._graph.after(taken)
            elif use is None or isinstance(use, (Output, AnyUse)):
                found = frozenset(self._describe(cast("U | Output | None", use)))
                if not found.isdisjoint(self._decisive):
                    described.clear()
                    described.update(found)
                    return iter(())
                described.update(found)
            else:
                onward.append(use)
        return iter(onward)

    def _is_end(self, use: U) -> bool:
        return self._graph.does(use) not in self._through or not self._keeps(use)
