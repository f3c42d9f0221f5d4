"""Prices changes of the requests of a lowered module, and searches others. A process of its own: Shardy may crash.

The search tries every assignment where they are few, else a beam.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jaxlib.mlir import ir

from .. import modules
from ..channel import die_with_parent
from .candidates import Requests
from .lowered import Change, Lowered, Spec, spec_in
from .price import Price, Pricing, size

MAX_MORE = {"arguments": 0.002, "held": 0.05, "flops": 0.1}
"""Shares by which bytes of arguments, of arguments and results, and operations may grow; each also by half of the share
by which what is sent shrinks."""

LEAST_SPARED = 0.95
"""Share of the bytes of arguments and results below which it is worth it to hold less, where no more is sent."""

LEAST_GATHERED = 0.5
"""Share of what is sent below which parameters may be whole where they are used: sharded ones are so to save memory."""

UNDERPRICED = 1.5
"""Bytes that a compiled program sends, by its price, from which that is too low: Shardy's reshards are not XLA's."""


def main() -> None:
    """Read a job from standard input, and write the candidates that cost less than the program, the cheapest first.

    The lines of a job are the path of the StableHLO, that of the result, the seconds that it may take, and the bytes
    that the compiled program sends, 0 where they are not known.
    """
    die_with_parent()
    source, destination, seconds, sent = sys.stdin.read().split("\n")
    with modules.context(), ir.Location.unknown():
        found = priced(Lowered(Path(source).read_bytes()), time.monotonic() + float(seconds), float(sent))
    Path(destination).write_text(json.dumps(found))
    os._exit(0)  # taking an interpreter with jaxlib apart takes longer than many a job


def suggest() -> None:
    """The same for other shardings of all arguments; further lines of the job are paths that are kept as they are."""
    die_with_parent()
    source, destination, seconds, *kept = sys.stdin.read().split("\n")
    with modules.context(), ir.Location.unknown():
        search = Search(Lowered(Path(source).read_bytes()), frozenset(kept))
        points = search.points(time.monotonic() + float(seconds))
        rows = [_row(search, point) for point in (*points[:MAX_LISTED], *points[MAX_LISTED:][-WIDTH:])]
    Path(destination).write_text(json.dumps({"size": search.size, "better": len(points) - 1, "rows": rows}))
    os._exit(0)


def _row(search: Search, point: Point) -> dict[str, Any]:
    """An assignment; constraints on state follow what is requested for it."""
    own = (each for each in point.changes if each.kind != "constraint" or each.number not in search.state)
    changes = [_change(search.requests, each) for each in own]
    return {"changes": changes, "price": point.price.bytes, "held": point.held}


def priced(lowered: Lowered, deadline: float, sent: float = 0) -> dict[str, Any]:
    """Return the price of the program, and the candidates that cost less, with their prices.

    Of a program that has `sent` far more than its price also other specs of constraints that cost less than that.
    """
    requests, pricing = Requests(lowered), Pricing(lowered)
    today = pricing.of(requests.pinned(()))
    found = []
    for each in requests.candidates(pricing):
        if time.monotonic() > deadline:
            break
        try:
            price = pricing.of(requests.pinned(each.changes))
        except Exception:  # Shardy refuses some programs; what it cannot propagate is not advised
            continue
        is_of_constraints = all(change.kind == "constraint" for change in each.changes)
        is_doubtful = is_of_constraints and not each.is_removal and sent > UNDERPRICED * today.bytes
        most = sent if is_doubtful else today.bytes * (LEAST_GATHERED if each.changes[0].kind == "use" else 1)
        is_less = price.bytes < most or price.flops < today.flops
        is_less |= each.kind == "f" and price.bytes <= today.bytes and _held(price) < LEAST_SPARED * _held(today)
        saved, more = max(sent, today.bytes) - price.bytes, price.arguments - today.arguments
        is_kept = requests.is_of(each, requests.untrained) and 2 * saved >= more  # whole anyway while it is used
        if is_less and _is_allowed(price, today, holds=is_doubtful or is_kept or requests.is_of(each, requests.data)):
            found.append((each, price))
    found.sort(key=lambda pair: (pair[1].bytes, pair[0].is_removal, len(pair[0].changes)))
    return {
        "today": today._asdict(),
        "candidates": [
            {
                "kind": each.kind,
                "changes": [_change(requests, change) for change in each.changes],
                "price": price.bytes,
                "flops": price.flops,
                "spared": max(0.0, _held(today) - _held(price)) if each.kind == "f" else 0.0,
            }
            for each, price in found
        ],
    }


def _is_allowed(price: Price, today: Price, *, holds: bool = False) -> bool:
    """Return whether a program may be worth it, also one that `holds` more, as other arrays are smaller then."""
    most = _held(today) * _most("held", price, today)
    is_small = price.arguments <= today.arguments * _most("arguments", price, today) and _held(price) <= most
    return (is_small or holds) and not _computes_too_much(price, today)


def _held(price: Price) -> float:
    return price.arguments + price.results


def _most(what: str, price: Price, today: Price) -> float:
    """The most that it may be, as a multiple of what it is today."""
    return 1 + max(MAX_MORE[what], (1 - price.bytes / max(today.bytes, 1)) / 2)


def _computes_too_much(price: Price, today: Price) -> bool:
    return price.flops > today.flops * _most("flops", price, today)


def _change(requests: Requests, change: Change) -> dict[str, Any]:
    """A change in names: paths of arguments and results, frames of operations, and specs as JAX spells them."""
    lowered = requests.lowered
    found: dict[str, Any] = {"kind": change.kind, "spec": None if change.spec is None else str(change.spec)}
    found["spelled"] = change.spec is None or change.spec.is_spelled
    if change.kind in ("argument", "use"):
        return found | {"name": lowered.names[change.number], "now": str(lowered.arguments[change.number])}
    if change.kind == "result":
        now = lowered.results[change.number]
        tied = requests.tied
        home = requests.home.get(tied[change.number]) if change.number in tied else None
        parameter = next((result for result, argument in tied.items() if argument == home), None)
        return found | {
            "name": lowered.result_names[change.number],
            "now": None if now is None else str(now),
            "tied": change.number in tied,
            "parameter": "" if parameter is None else lowered.result_names[parameter],
            "frames": [list(each) for each in lowered.result_stack(change.number)],
        }
    operation = lowered.operations[change.number]
    attributes = modules.attributes_of(operation)
    requested = str(spec_in(str(attributes["sharding"]))) if change.kind == "constraint" else None
    return found | {
        "name": operation.name,
        "now": requested,
        "frames": [list(each) for each in lowered.stack(change.number)],
    }


MAX_LISTED = 400
"""Assignments that are all priced, of more a beam; and those that are listed at most, besides a few that hold less."""

LEAST_HELD = 0.01
"""Share of what is held by which an assignment differs from another one."""

WIDTH, MAX_WIDTH = 6, 24

TOGETHER_SHARE = 0.4
"""Share of the time in which changes of several arguments are looked for first."""

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


def _without_needless(points: Sequence[Point]) -> list[Point]:
    """Leave out what is another one, cheapest first, with further changes, and holds and computes as much."""
    found: list[tuple[frozenset[Change], Point]] = []
    for point in points:
        changes, most = frozenset(point.changes), (1 + LEAST_HELD) * point.held
        others = (other for fewer, other in found[:MAX_LISTED] if fewer < changes)
        if not any(each.held <= most and each.price.flops <= point.price.flops for each in others):
            found.append((changes, point))
    return [point for _, point in found]


def _front(points: Sequence[Point]) -> list[Point]:
    """Return the points that hold less than all before them, the cheapest first as they are given."""
    found: list[Point] = []
    for point in points:
        if not found or point.held < (1 - LEAST_HELD) * found[-1].held:
            found.append(point)
    return found


class Search:
    """The search over a module's requests; those of all layers, and of an optimizer's leaves, go together."""

    def __init__(self, lowered: Lowered, kept: frozenset[str] = frozenset()) -> None:
        """Arguments with a path in `kept` stay as they are; `state` are the operations that give the next step's."""
        self._lowered = lowered
        self.requests, self._pricing = Requests(lowered), Pricing(lowered)
        self.state = set(itertools.chain.from_iterable(self.requests.state_constraints.values()))
        self._groups = list(self._all_groups(kept))
        self._spaces = [list(self._space(group)) for group in self._groups]
        self._seen: dict[State, Point | None] = {}

    @property
    def size(self) -> int:
        """Number of assignments."""
        return math.prod(map(len, self._spaces))

    def points(self, deadline: float) -> list[Point]:
        """Today's first, then those that send less, then those that hold less; cheapest first.

        Of those that hold more there are a few, the more expensive ones if they hold less than the others: what is held
        is not the peak, which may be of what was gathered.
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
        fit = [point for point in found if not _computes_too_much(point.price, now.price)]
        less = [point for point in fit if point.price.bytes < now.price.bytes]
        less.sort(key=lambda point: (point.price.bytes, len(point.changes)))
        less = _without_needless(less)
        heavier = _front([point for point in less if not self._fits(point, now)])[:WIDTH]
        listed = set(map(id, heavier)) | {id(point) for point in less if self._fits(point, now)}
        better = [point for point in less if id(point) in listed]
        lighter = [p for p in fit if p.held < now.held * 0.95 and p.price.bytes >= now.price.bytes]
        lighter.sort(key=lambda point: (point.held, point.price.bytes))
        return [now, *better, *lighter[:WIDTH]]

    def _beam(self, today: State, now: Point, deadline: float) -> None:
        beam, width, begun = [today], WIDTH, time.monotonic()
        together = self._together(today, begun + TOGETHER_SHARE * (deadline - begun))
        while time.monotonic() < deadline:
            alone = (
                (*state[:group], spec, *state[group + 1 :])
                for state in beam
                for group, space in enumerate(self._spaces)
                for spec in space
            )
            others = itertools.chain.from_iterable((*self._swapped(state), *self._alike(state)) for state in beam)
            wide, together = dict.fromkeys((*together, *others, *alone)), iter(())
            priced: list[tuple[Point, State]] = []
            for state in (*beam, *wide):
                if time.monotonic() > deadline:
                    return
                point = self._point(state)
                if point is not None:
                    priced.append((point, state))
            priced.sort(key=lambda each: (each[0].price.bytes, self._kept(each[0])))
            fit = [state for point, state in priced if self._fits(point, now)]
            best = set(map(id, _front([point for point, _ in priced])[: width // 2]))
            fresh = list(dict.fromkeys([*fit[:width], *(state for point, state in priced if id(point) in best)]))
            if set(fresh) == set(beam):
                if width == MAX_WIDTH:
                    return
                width *= 2
            beam = fresh

    def _together(self, state: State, deadline: float) -> Iterator[State]:
        """One argument's spec changed by a step, and others as propagation completes them for it.

        What has to be sharded alike costs more while only one of it is.
        """
        arguments = [number for number, group in enumerate(self._groups) if group.kind == "argument"]
        weights = [n for n in arguments if not set(self._groups[n].members) & set(self.requests.data)]
        is_whole = not any(any(self._groups[number].now.dims) for number in weights)
        for number, is_kept in itertools.product(arguments, (True,) if is_whole else (True, False)):
            group = self._groups[number]
            for spec in self.requests.others(group.now, self._lowered.types[group.members[0]]):
                if time.monotonic() > deadline:
                    return
                specs = dict.fromkeys(group.members, spec)
                for other in weights:
                    dims = self._groups[other].now.dims
                    free = Spec(dims if is_kept else ((),) * len(dims), tuple(range(len(dims))))
                    specs = dict.fromkeys(self._groups[other].members, free) | specs
                try:
                    found = self._pricing.propagated(self.requests.pinned(self.requests.with_results(specs)))
                except Exception:  # Shardy refuses it
                    continue
                specs = {n: Spec(found[self._groups[n].members[0]].dims) for n in weights}
                if all(each.is_spelled for each in specs.values()):
                    yield tuple(({number: spec} | specs).get(n, now) for n, now in enumerate(state))

    def _swapped(self, state: State) -> Iterator[State]:
        """The same with two axes in the place of each other, in all specs that have one of them."""
        for axes in itertools.combinations([each for each, count in self._lowered.axes.items() if count > 1], 2):
            new = dict(zip(axes, reversed(axes), strict=True))
            found = [
                spec and spec._replace(dims=tuple(tuple(new.get(axis, axis) for axis in dim) for dim in spec.dims))
                for spec in state
            ]
            pairs = zip(self._groups, found, strict=True)
            if all(spec is None or self._lowered.fits(spec.dims, self._type(group).shape) for group, spec in pairs):
                yield tuple(found)

    def _alike(self, state: State) -> Iterator[State]:
        """Another spec for all arguments of one shape that have one spec, as moments have or a layer's projections."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for number, (group, spec) in enumerate(zip(self._groups, state, strict=True)):
            if group.kind == "argument":
                alike.setdefault((tuple(self._type(group).shape), spec), []).append(number)
        for numbers in alike.values():
            for spec in self._spaces[numbers[0]] if len(numbers) > 1 else ():
                yield tuple(spec if number in numbers else now for number, now in enumerate(state))

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

    def _fits(self, point: Point, now: Point) -> bool:
        """Return whether little more is held than today between steps, or at the beginning and the end of one."""
        most = 1 + MAX_MORE["held"]
        return self._kept(point) <= self._kept(now) * most or point.held <= now.held

    def _kept(self, point: Point) -> float:
        """The bytes that are held between steps: without data, as activations are larger."""
        lowered = self._lowered
        specs = {each.number: each.spec for each in point.changes if each.kind == "argument" and each.spec}
        return point.held - sum(
            size(lowered.types[number]) / lowered.parts(specs.get(number, lowered.arguments[number]))
            for number in self.requests.data
        )

    def _all_groups(self, kept: frozenset[str]) -> Iterator[Group]:
        lowered, requests = self._lowered, self.requests
        for members in requests.groups():
            if lowered.names[members[0]] not in kept:
                yield Group("argument", members, lowered.arguments[members[0]])
        for members in () if lowered.is_explicit else requests.result_groups():
            now = lowered.results[members[0]]
            if now is not None:
                yield Group("result", members, now)
        for members in () if lowered.is_explicit else requests.constraint_groups():
            if not self.state & set(members):
                yield Group("constraint", members, lowered.requested(members[0]))

    def _type(self, group: Group) -> Any:
        number = group.members[0]
        if group.kind == "constraint":
            return self._lowered.constrained_type(number)
        return (self._lowered.types if group.kind == "argument" else self._lowered.result_types)[number]

    def _space(self, group: Group) -> Iterator[Spec | None]:
        """All ways to place each axis of an array in one dimension, or in none; the program's own first.

        Of results and constraints only those that differ from the program's in one step, and none at all.
        """
        lowered = self._lowered
        yield group.now
        type = self._type(group)
        if group.kind != "argument":
            yield from self.requests.others(group.now, type)
            yield from (None,) * (group.kind == "constraint")
            return
        axes = [name for name, size in lowered.axes.items() if size > 1]
        for places in itertools.product(range(-1, type.rank), repeat=len(axes)):
            dims = tuple(
                tuple(axis for axis, place in zip(axes, places, strict=True) if place == dim)
                for dim in range(type.rank)
            )
            if dims != group.now.dims and lowered.fits(dims, type.shape):
                yield Spec(dims)
