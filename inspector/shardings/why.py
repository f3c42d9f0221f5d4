"""Reasons for a value's sharding: for each axis its origin, and the propagation path.

Each step back is a move that Shardy recorded: from this value to the one that it took the axis from, always to an
earlier step of the propagation, until a value that has the axis from nowhere else: an argument or a result with a
sharding of its own, a constraint, a shard_map's specs. The replay goes through the same moves from step to step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...parsers.errors import readable
from ...parsers.mlir import Origin, Origins
from ...parsers.mlir.sdy import DimensionSharding, Sharding
from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..dataflow.mlir import Dataflow, Node
from ..ir.derived import derived
from ..units import grouped
from .moves import Move, moves_of
from .recorded import given_to_added, origin_name, origins_at, sharding_at


class Step(Record, frozen=True):
    """An axis came from `source` to `target` at the operation of `row` (-1: at the return of the function).

    `number` counts the steps of the whole propagation; it is None at the return of the function, where Shardy does not
    record the steps of all results, and at what XLA adds to it.
    """

    number: int | None
    row: int
    source: Node
    target: Node


class Cause(Record, frozen=True):
    """The path of one axis to a value: `steps` lead from it back to `root`, where it enters from `origin`.

    `omitted` counts the steps before `root` that are not listed. `origin` is None where Shardy's record of it is lost.
    Without steps, the value is the root.
    """

    axis: AxisRef
    origin: Origin | None
    root: Node
    steps: tuple[Step, ...] = ()
    omitted: int = 0


def causes(flow: Dataflow, node: Node, most: int | None = None) -> tuple[Cause, ...]:
    """The cause of each axis in a value's sharding, as Shardy lists them, with at most so many steps."""
    sharding = sharding_at(flow, node)
    if sharding is None:
        return ()
    # Of what leaves the program XLA takes axes away in the end: those that do not divide it, and parts of axes.
    used = [*sharding.unreduced, *(axis for dim in sharding.dims for axis in dim.axes)]
    listed = (axis for axis, _ in origins_at(flow, node))
    return tuple(cause(flow, node, axis, most) for axis in listed if any(overlap(axis, own) for own in used))


def cause(flow: Dataflow, node: Node, axis: AxisRef, most: int | None = None) -> Cause:
    """Return the path of an axis to a value, with at most so many steps."""
    return _ways_of(flow).cause(node, axis, most)


def origin_of(flow: Dataflow, node: Node, axis: AxisRef) -> Origin | None:
    """The origin of an axis in a value's sharding, by Shardy's record."""
    return _ways_of(flow).origin(node, axis)


class _Rest(Record, frozen=True):
    """The rest of a path from a value: the number of the next step, and how many there are to `root`."""

    step: int
    count: int
    root: Node


class _Ways:
    """The ways back in a dataflow. In a deep network they are long, and most of a way is that of the value before."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.moves = moves_of(flow)
        self._origins: dict[Node, Origins] = {}
        self._manual: dict[int, frozenset[str]] = {}
        self._back: dict[tuple[Node, AxisRef], tuple[Move | None, Move | None]] = {}
        self._rests: dict[tuple[Node, AxisRef], _Rest] = {}

    def cause(self, node: Node, axis: AxisRef, most: int | None) -> Cause:
        """The way from a value; where only its first steps are wanted, what follows is looked up."""
        steps: list[Step] = []
        free: list[Node | None] = []
        here, latest, known = node, 1 << 62, 0
        # What stands in a value's own sharding did not come from elsewhere.
        while not self._is_own(here, axis):
            rest = None if most is None or len(steps) < most else self._rests.get((here, axis))
            if rest is not None and rest.step < latest:
                here, known = rest.root, rest.count
                break
            move, is_free = self._move(here, axis, latest)
            if move is not None:
                steps.append(Step(move.step, move.row, move.source, target=here))
                free.append(here if is_free else None)
                here, latest = move.source, move.step
            elif (across := self._across(here, axis)) is not None and across.source not in [s.target for s in steps]:
                steps.append(across)
                here = across.source
            else:
                break
        if len(free) == len(steps):
            for number, (step, start) in enumerate(zip(steps, free, strict=True)):
                if start is not None and step.number is not None:
                    self._rests[start, axis] = _Rest(step.number, len(steps) - number + known, here)
        listed = steps[:most]
        # An argument's own axis is recorded at other values as a constraint's that asks for the same, and a shard_map's
        # as that of the constraint behind it.
        has_its_own = here.kind == "argument" or self._is_manual(here, axis)
        is_of_root = has_its_own and here != node and self._is_own(here, axis)
        origin = self.full_origin(here, axis) if is_of_root else self.origin(node, axis)
        return Cause(axis, origin, here, steps=tuple(listed), omitted=len(steps) - len(listed) + known)

    def origin(self, node: Node, axis: AxisRef) -> Origin | None:
        """The origin of an axis. What is recorded of a value is read once."""
        if self._is_manual(node, axis):
            return Origin("self")
        if node not in self._origins:
            self._origins[node] = origins_at(self.flow, node)
        return next((origin for own, origin in self._origins[node] if overlap(own, axis)), None)

    def _is_manual(self, node: Node, axis: AxisRef) -> bool:
        """Return whether a value is the result of a shard_map over an axis, whose out_specs alone can ask for it."""
        if node.kind != "result" or not self.flow.rows[node.row].name.endswith("manual_computation"):
            return False
        if node.row not in self._manual:
            names = readable(lambda: self.flow.operation(node.row).annotations.manual_axes)
            self._manual[node.row] = frozenset(names or ())
        return axis.name in self._manual[node.row]

    def full_origin(self, node: Node, axis: AxisRef) -> Origin | None:
        """The origin of an axis, by the name that it has at other values."""
        origin = self.origin(node, axis)
        if origin is None or origin.kind != "self":
            return origin
        match node.kind:
            case "argument":
                return Origin("input", None, node.number)
            case "output":
                return Origin("output", None, node.number)
        name = origin_name(self.flow, node.row)
        if not self.flow.rows[node.row].name.endswith("manual_computation"):
            return Origin("constraint", name)
        return Origin("input" if node.kind == "block" else "output", name, node.number)

    def _is_own(self, node: Node, axis: AxisRef) -> bool:
        origin = self.origin(node, axis)
        return origin is not None and origin.kind == "self"

    def _move(self, node: Node, axis: AxisRef, latest: int) -> tuple[Move | None, bool]:
        """The first move that brought an axis to a value, before a step, and whether that step makes no difference."""
        if (node, axis) not in self._back:
            self._back[node, axis] = self._moves_back(node, axis)
        alike, first = self._back[node, axis]
        if alike is not None and alike.step < latest:
            return alike, True
        return (first if first is not None and first.step < latest else None), alike is None

    def _moves_back(self, node: Node, axis: AxisRef) -> tuple[Move | None, Move | None]:
        """The first move that brought it with the origin that it has, and the first one of all."""
        moves = [move for move in self.moves.to(node) if overlap(move.axis, axis)]
        if not moves:
            return None, None
        # What a shard_map in a loop wants of a loop's value is recorded as if the value had it.
        own = self.full_origin(node, axis)
        alike = [move for move in moves if self.full_origin(move.source, axis) == own]
        return min(alike, key=_step, default=None), min(moves, key=_step)

    def _across(self, node: Node, axis: AxisRef) -> Step | None:
        """The way over what propagation does not record: the return, and the reshards that XLA adds afterwards."""
        source = self._across_return(node, axis)
        if source is not None:
            return Step(None, -1, source, target=node)
        given = given_to_added(self.flow, node)
        if given is not None:
            return Step(None, node.row, given, target=node) if self.origin(given, axis) is not None else None
        for row in self.flow.users(node):
            (result, *_) = self.flow.results(row) or (node,)
            if given_to_added(self.flow, result) == node and any(overlap(m.axis, axis) for m in self.moves.to(result)):
                return Step(None, row, result, target=node)
        return None

    def _across_return(self, node: Node, axis: AxisRef) -> Node | None:
        """The other side of the function's return, if the axis must have come from there."""
        returned = self.flow.returned
        if node.kind == "output":
            return returned[node.number] if node.number < len(returned) else None
        origin = self.origin(node, axis)
        if origin is None or origin.name is not None or origin.kind != "output" or origin.index is None:
            return None
        is_returned = origin.index < len(returned) and returned[origin.index] == node
        return Node("output", -1, origin.index) if is_returned else None


@derived
def _ways_of(flow: Dataflow) -> _Ways:
    return _Ways(flow)


def _step(move: Move) -> int:
    return move.step


def overlap(one: AxisRef, other: AxisRef) -> bool:
    """Return whether two axes, or parts of axes, share coordinates of devices."""
    if one.name != other.name:
        return False
    if one.sub is None or other.sub is None:
        return True
    (first, first_size), (second, second_size) = one.sub, other.sub
    return first < second * second_size and second < first * first_size


BEFORE = -1
"""The step before the first one: what the program itself says."""


class Replay:
    """The propagation of a dataflow, forwards and backwards; `steps` are the numbers at which something moved."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        every = moves_of(flow).all
        self.moves: Mapping[int, Sequence[Move]] = grouped((move.step, move) for move in every)
        self.steps: tuple[int, ...] = tuple(sorted(self.moves))
        self._arrivals = grouped((node, (move.step, move.axis)) for move in every for node in move.targets)

    def arrival(self, node: Node, axis: AxisRef) -> int:
        """The step that brought an axis to a value; `BEFORE` for one that it had from the beginning."""
        own = origin_of(self.flow, node, axis)
        if own is not None and own.kind == "self":
            return BEFORE
        came = [step for step, moved in self._arrivals.get(node, ()) if overlap(moved, axis)]
        if came:
            return min(came)
        if node.kind == "output" and node.number < len(self.flow.returned):
            returned = self.flow.returned[node.number]
            return BEFORE if returned is None else self.arrival(returned, axis)
        return BEFORE

    def after(self, node: Node, step: int) -> Sharding | None:
        """The sharding of a value after a step."""
        final = sharding_at(self.flow, node)
        if final is None:
            return None
        dims = [
            DimensionSharding(tuple(axis for axis in dim.axes if self.arrival(node, axis) <= step))
            for dim in final.dims
        ]
        return replace(final, dims=tuple(dims))
