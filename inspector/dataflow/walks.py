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


class _Met(Generic[V, T]):
    """A value that a walk has come to, as the number of that order, and the lowest number of those that it reaches."""

    __slots__ = ("ends", "lowest", "number", "onward", "value")

    def __init__(self, value: V, number: int) -> None:
        self.value = value
        self.number = self.lowest = number
        self.ends: set[T] = set()
        self.onward: Iterator[V] = iter(())


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
        met: dict[V, _Met[V, T]] = {}
        path: list[_Met[V, T]] = []
        open_values: list[_Met[V, T]] = []

        def enter(value: V) -> None:
            one = met[value] = _Met(value, len(met))
            one.onward = self._onward(value, one.ends)
            path.append(one)
            open_values.append(one)

        enter(start)
        while path:
            one = path[-1]
            after = next(one.onward, None)
            ends = one.ends if after is None else self._of.get(after)
            if ends is not None and not self._decisive.isdisjoint(ends):
                # All of these reach what the path ends at.
                self._of.update(dict.fromkeys((each.value for each in open_values), frozenset(ends)))
                return
            if after is None:
                path.pop()
                if one.lowest == one.number:  # all that are behind it were met from it, and gave it their ends
                    members = [open_values.pop()]
                    while members[-1] is not one:
                        members.append(open_values.pop())
                    self._of.update(dict.fromkeys((each.value for each in members), frozenset(one.ends)))
                if path:
                    path[-1].lowest = min(path[-1].lowest, one.lowest)
                    path[-1].ends |= one.ends
            elif ends is not None:
                one.ends |= ends
            elif after in met:
                one.lowest = min(one.lowest, met[after].number)
            else:
                enter(after)

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
