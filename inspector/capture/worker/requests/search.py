"""Other requests of a module, searched by price: every assignment where they are few, else a beam."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Literal, NamedTuple

from .candidates import Requests
from .lowered import Change, Lowered, Spec
from .price import Price, Pricing

MAX_LISTED = 400
"""Assignments that are all priced; of more, a beam."""

WIDTH = 6
MAX_MORE_MEMORY = 0.05
MAX_MORE_FLOPS = 0.1

State = tuple[Spec | None, ...]


class Group(NamedTuple):
    """Requests that get one spec together: arguments, results that are no state, or constraints of one line."""

    kind: Literal["argument", "result", "constraint"]
    members: list[int]
    now: Spec


class Point(NamedTuple):
    """An assignment of specs to groups of requests, as changes, and its price."""

    changes: tuple[Change, ...]
    price: Price

    @property
    def held(self) -> float:
        """Bytes of arguments and results."""
        return self.price.arguments + self.price.results


class Search:
    """The search over a module's requests; those of all layers, and of an optimizer's leaves, go together."""

    def __init__(self, lowered: Lowered, kept: frozenset[str] = frozenset()) -> None:
        """Arguments with a path in `kept` stay as they are; `state` are the operations that give the next step's."""
        self._lowered = lowered
        self.requests, self._pricing = Requests(lowered), Pricing(lowered)
        self.state = {lowered.owner_of(result) for result in self.requests.tied}
        self._groups = list(self._all_groups(kept))
        self._spaces = [list(self._space(group)) for group in self._groups]
        self._seen: dict[State, Point | None] = {}

    @property
    def size(self) -> int:
        """Number of assignments."""
        return math.prod(map(len, self._spaces))

    def points(self, deadline: float) -> list[Point]:
        """Today's first, then those that send less, then those that hold less; cheapest first.

        Of those that hold more there are a few: what is held is not the peak, which may be of what was gathered.
        """
        today: State = tuple(group.now for group in self._groups)
        now = self._point(today)
        if now is None:
            return []
        if self.size <= MAX_LISTED:
            for state in itertools.product(*self._spaces):
                if time.monotonic() > deadline:
                    break
                self._point(state)
        else:
            self._beam(today, now, deadline)
        found = [point for point in self._seen.values() if point is not None and point is not now]
        fit = [point for point in found if point.price.flops <= now.price.flops * (1 + MAX_MORE_FLOPS)]
        less = [point for point in fit if point.price.bytes < now.price.bytes]
        less.sort(key=lambda point: (point.price.bytes, len(point.changes)))
        most = now.held * (1 + MAX_MORE_MEMORY)
        heavier = [point for point in less if point.held > most][:WIDTH]
        better = [point for point in less if point.held <= most or point in heavier]
        lighter = [point for point in fit if point.held < now.held * 0.95 and point not in better]
        lighter.sort(key=lambda point: (point.held, point.price.bytes))
        return [now, *better, *lighter[:WIDTH]]

    def _beam(self, today: State, now: Point, deadline: float) -> None:
        beam = [today]
        while time.monotonic() < deadline:
            wide = dict.fromkeys(
                (*state[:group], spec, *state[group + 1 :])
                for state in beam
                for group, space in enumerate(self._spaces)
                for spec in space
            )
            priced: list[tuple[float, float, State]] = []
            for state in (*beam, *wide):
                if time.monotonic() > deadline:
                    return
                point = self._point(state)
                if point is not None:
                    priced.append((point.price.bytes, point.held, state))
            priced.sort(key=lambda each: each[:2])
            fit = [state for _, held, state in priced if held <= now.held * (1 + MAX_MORE_MEMORY)]
            fresh = list(dict.fromkeys([*fit[:WIDTH], *(state for *_, state in priced[: WIDTH // 2])]))
            if set(fresh) == set(beam):
                return
            beam = fresh

    def _point(self, state: State) -> Point | None:
        if state not in self._seen:
            changed = [
                (group, spec)
                for group, spec in zip(self._groups, state, strict=True)
                if spec is None or spec.dims != group.now.dims
            ]
            specs = {n: spec for group, spec in changed if group.kind == "argument" and spec for n in group.members}
            others = (
                Change(group.kind, number, spec)
                for group, spec in changed
                if group.kind != "argument"
                for number in group.members
            )
            changes = (*self.requests.with_results(specs), *others)
            try:
                self._seen[state] = Point(changes, self._pricing.of(self.requests.pinned(changes)))
            except Exception:  # Shardy refuses it
                self._seen[state] = None
        return self._seen[state]

    def _all_groups(self, kept: frozenset[str]) -> Iterator[Group]:
        lowered, requests = self._lowered, self.requests
        for members in requests.groups():
            if lowered.names[members[0]] not in kept:
                yield Group("argument", members, lowered.arguments[members[0]])
        for members in requests.result_groups():
            now = lowered.results[members[0]]
            if now is not None:
                yield Group("result", members, now)
        for members in () if lowered.is_explicit else requests.constraint_groups():
            if not self.state & set(members):
                yield Group("constraint", members, requests.requested(members[0]))

    def _space(self, group: Group) -> Iterator[Spec | None]:
        """All ways to place each axis of an array in one dimension, or in none; the program's own first.

        Of results and constraints only those that differ from the program's in one step, and none at all.
        """
        lowered, number = self._lowered, group.members[0]
        yield group.now
        if group.kind != "argument":
            type = lowered.result_types[number] if group.kind == "result" else self.requests.constrained_type(number)
            yield from self.requests.others(group.now, type)
            yield from (None,) * (group.kind == "constraint")
            return
        type = lowered.types[number]
        axes = [name for name, size in lowered.axes.items() if size > 1]
        for places in itertools.product(range(-1, type.rank), repeat=len(axes)):
            dims = tuple(
                tuple(axis for axis, place in zip(axes, places, strict=True) if place == dim)
                for dim in range(type.rank)
            )
            if dims != group.now.dims and lowered.fits(dims, type.shape):
                yield Spec(dims)
