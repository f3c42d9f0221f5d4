"""Why a value is sharded as it is: for each axis its origin, and the way on which propagation brought it.

Each step back is a move that Shardy recorded: from this value to the one that it took the axis from, always to an
earlier step of the propagation, until a value that has the axis from nowhere else: an argument or a result with a
sharding of its own, a constraint, a shard_map's specs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...parsers.mesh_syntax import AxisRef
from ...parsers.mlir import Origin
from .dataflow import Dataflow, Node
from .moves import moves_of
from .recorded import origin_name, origins_at, sharding_at


@dataclass(frozen=True, slots=True)
class Step:
    """An axis came from `source` to `target` at the operation of `row` (-1: at the return of the function).

    `number` counts the steps of the whole propagation; it is None at the return of the function, where Shardy does not
    record the steps of all results.
    """

    number: int | None
    row: int
    source: Node
    target: Node


@dataclass(frozen=True, slots=True)
class Cause:
    """How one axis came to a value: `steps` lead from it back to `root`, where it comes from `origin`.

    `origin` is None where Shardy's record of it is lost. Without steps, the value is the root.
    """

    axis: AxisRef
    origin: Origin | None
    root: Node
    steps: tuple[Step, ...] = ()


def causes(flow: Dataflow, node: Node) -> tuple[Cause, ...]:
    """The cause of each axis in a value's sharding, as Shardy lists them."""
    sharding = sharding_at(flow, node)
    if sharding is None:
        return ()
    # Of what leaves the program XLA takes axes away in the end: those that do not divide it, and parts of axes.
    used = [*sharding.unreduced, *(axis for dim in sharding.dims for axis in dim.axes)]
    listed = (axis for axis, _ in origins_at(flow, node))
    return tuple(cause(flow, node, axis) for axis in listed if any(overlap(axis, own) for own in used))


def cause(flow: Dataflow, node: Node, axis: AxisRef) -> Cause:
    """How an axis came to a value."""
    origin = origin_of(flow, node, axis)
    steps: list[Step] = []
    here, latest = node, 1 << 62
    # What stands in a value's own sharding did not come from elsewhere.
    while not _is_own(flow, here, axis):
        moves = [move for move in moves_of(flow).to(here) if move.step < latest and overlap(move.axis, axis)]
        # What a shard_map in a loop wants of a loop's value is recorded as if the value had got it.
        moves = [
            move for move in moves if full_origin(flow, move.source, axis) == full_origin(flow, here, axis)
        ] or moves
        if moves:
            move = min(moves, key=lambda move: move.step)
            steps.append(Step(move.step, move.row, move.source, here))
            here, latest = move.source, move.step
        elif (source := _across_return(flow, here, axis)) is not None and source not in [step.target for step in steps]:
            steps.append(Step(None, -1, source, here))
            here = source
        else:
            break
    return Cause(axis, origin, here, tuple(steps))


def _across_return(flow: Dataflow, node: Node, axis: AxisRef) -> Node | None:
    """The other side of the function's return, if the axis must have come from there."""
    origin = origin_of(flow, node, axis)
    if node.kind == "output":
        return flow.returned[node.index] if node.index < len(flow.returned) else None
    if origin is None or origin.name is not None or origin.kind != "output" or origin.index is None:
        return None
    is_returned = origin.index < len(flow.returned) and flow.returned[origin.index] == node
    return Node("output", -1, origin.index) if is_returned else None


def origin_of(flow: Dataflow, node: Node, axis: AxisRef) -> Origin | None:
    """The origin of an axis in a value's sharding, by Shardy's record."""
    return next((origin for own, origin in origins_at(flow, node) if overlap(own, axis)), None)


def full_origin(flow: Dataflow, node: Node, axis: AxisRef) -> Origin | None:
    """The origin of an axis, by the name that it has at other values."""
    origin = origin_of(flow, node, axis)
    if origin is None or origin.kind != "self":
        return origin
    match node.kind:
        case "argument":
            return Origin("input", None, node.index)
        case "output":
            return Origin("output", None, node.index)
    name = origin_name(flow, node.row)
    if not flow.rows[node.row].name.endswith("manual_computation"):
        return Origin("constraint", name)
    return Origin("input" if node.kind == "block" else "output", name, node.index)


def _is_own(flow: Dataflow, node: Node, axis: AxisRef) -> bool:
    origin = origin_of(flow, node, axis)
    return origin is not None and origin.kind == "self"


def overlap(one: AxisRef, other: AxisRef) -> bool:
    """Whether two axes, or parts of axes, share devices' coordinates."""
    if one.name != other.name:
        return False
    if one.sub is None or other.sub is None:
        return True
    (first, first_size), (second, second_size) = one.sub, other.sub
    return first < second * second_size and second < first * first_size
