"""Causes in words: whose axis it was, and through which operations of which lines it came.

`y` on w2 dim 0 ← argument w1 dim 1, via dot_general (line 8, step 5)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal

from ...parsers.mlir import ShardingRule
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Span
from ..catalog.spellings import SDY_REQUESTS
from ..dataflow.mlir import Dataflow, Node
from ..ir.derived import derived
from ..ir.program import Program
from ..ir.sharding_spellings import from_sdy
from ..report import (
    AxisOrigin,
    BoundaryOrigin,
    ConstraintOrigin,
    ExplainedStep,
    NamedOperation,
    NodeAxis,
    PropagationSteps,
    ShardedValue,
    ShardMapOrigin,
    SourcePosition,
    ValueDimension,
    ValueName,
    Why,
)
from .recorded import Places, origin_name, sharding_at
from .table import node_of, propagated
from .why import BEFORE, Cause, Replay, Step, cause, causes, overlap


def why(program: Program, value: ShardedValue, most: int | None = None) -> tuple[Why, ...]:
    """Return the reasons for a value's sharding, axis by axis, with at most so many steps.

    Empty for one that is not sharded, or of which nothing is known.
    """
    _, flow = propagated(program)
    node = None if flow is None else node_of(flow, value)
    if flow is None or node is None:
        return ()
    wording = wording_of(flow)
    return tuple(wording.why(found, node) for found in causes(flow, node, most))


@derived
def why_axis(flow: Dataflow, node: Node, axis: AxisRef, most: int | None = None) -> Why:
    """The reason for one axis of a value, with at most so many steps."""
    return wording_of(flow).why(cause(flow, node, axis, most), node)


def why_axes(program: Program, axes: Iterable[NodeAxis], most: int | None = None) -> tuple[Why, ...]:
    """Return the reasons for axes of values, each once, with at most so many steps.

    Empty where propagation was not recorded.
    """
    _, flow = propagated(program)
    return () if flow is None else tuple(dict.fromkeys(why_axis(flow, *each, most) for each in axes))


def propagation(program: Program) -> PropagationSteps | None:
    """The propagation step by step, all of which are read; None where it was not recorded."""
    _, flow = propagated(program)
    return None if flow is None else _propagation(flow)


@derived
def _propagation(flow: Dataflow) -> PropagationSteps:
    replay = Replay(flow)
    return PropagationSteps((BEFORE, *replay.steps), partial(_spec_after, replay), partial(_moves, replay))


def _spec_after(replay: Replay, step: int, value: ShardedValue) -> str:
    node = node_of(replay.flow, value)
    sharding = None if node is None else replay.after(node, step)
    if sharding is None:
        return value.spec or "?"
    try:
        return str(from_sdy(sharding, replay.flow.module.meshes).closed())
    except ValueError:
        return "?"


def _moves(replay: Replay, step: int) -> str:
    wording = wording_of(replay.flow)
    moves = (
        f"{move.axis} from {wording.value(move.source, move.axis)} to "
        + ", ".join(str(wording.value(target, move.axis)) for target in move.targets)
        for move in replay.moves.get(step, ())
    )
    return "before propagation" if step == BEFORE else f"after step {step} of {replay.steps[-1]}: {'; '.join(moves)}"


class Wording:
    """Names for the values, operations and origins of a dataflow."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.places = Places(flow)
        self._rules: dict[int, str | None] = {}

    def why(self, found: Cause, node: Node) -> Why:
        """A cause in words."""
        origin, place = self.origin(found)
        return Why(
            axis=found.axis,
            dim=self.dim(node, found.axis),
            origin=origin,
            place=place,
            root=self.value(found.root, found.axis),
            steps=tuple(self.step(step, found.axis) for step in found.steps),
            omitted=found.omitted,
        )

    def step(self, step: Step, axis: AxisRef) -> ExplainedStep:
        """A step in words."""
        is_return = step.row < 0
        operation, place = (None, SourcePosition()) if is_return else self.places.operation(step.row)
        return ExplainedStep(
            number=step.number,
            operation=operation,
            rule=None if is_return else self.rule(step.row),
            source=self.value(step.source, axis),
            target=self.value(step.target, axis),
            place=place,
            span=None if is_return else self.span(step.row),
        )

    def span(self, row: int) -> Span:
        """Return the span of an operation."""
        found = self.flow.rows[row]
        return Span(found.start, found.own[-1].end)

    def value(self, node: Node, axis: AxisRef) -> ValueDimension:
        """A value by its path, its operation, or its place in a shard_map, with the dimension that an axis cuts."""
        return ValueDimension(self.name(node), self.dim(node, axis))

    def name(self, node: Node) -> ValueName:
        """A value by its path or its operation."""
        match node.kind:
            case "argument":
                return ValueName(self.places.argument(node.number))
            case "output":
                return ValueName(self.places.output(node.number))
            case "block":
                return ValueName(str(node.number), self.places.operation(node.row)[0], is_input=True)
        made_by, given = self.places.operation(node.row)[0], next(iter(self.flow.operands(node.row)), None)
        if given is not None and given.kind == "argument" and str(made_by) == self.places.argument(given.number):
            return self.name(given)  # which the partitioner reshards
        return ValueName(self.flow.rows[node.row].results[node.number], made_by)

    def dim(self, node: Node, axis: AxisRef) -> int | None:
        """The dimension of a value that is cut along an axis."""
        sharding = sharding_at(self.flow, node)
        dims = () if sharding is None else sharding.dims
        return next((index for index, dim in enumerate(dims) if any(overlap(own, axis) for own in dim.axes)), None)

    def rule(self, row: int) -> str | None:
        """The sharding rule of an operation in einsum letters."""
        if row not in self._rules:
            rule = self.flow.records.rule(self.flow.rows[row])
            self._rules[row] = None if rule is None else einsum(rule)
        return self._rules[row]

    def origin(self, found: Cause) -> tuple[AxisOrigin, SourcePosition]:
        """Return what requested an axis, and where."""
        origin = found.origin
        if origin is None or origin.kind == "self":
            return self._at_root(found.root, found.axis)
        if origin.name is None:
            role: Literal["argument", "output"] = "argument" if origin.kind == "input" else "output"
            return self._boundary(role, origin.index or 0, found.axis), SourcePosition()
        row = _named_rows(self.flow).get(origin.name)
        operation, place = (None, SourcePosition()) if row is None else self.places.operation(row)
        if origin.kind == "constraint":
            return _constraint(operation), place
        return ShardMapOrigin("input" if origin.kind == "input" else "output", origin.index), place

    def _at_root(self, root: Node, axis: AxisRef) -> tuple[AxisOrigin, SourcePosition]:
        if root.kind == "argument" or root.kind == "output":
            return self._boundary(root.kind, root.number, axis), SourcePosition()
        operation, place = self.places.operation(root.row)
        if self.flow.rows[root.row].name.endswith("manual_computation"):
            return ShardMapOrigin("input" if root.kind == "block" else "output", root.number), place
        return _constraint(operation), place

    def _boundary(self, role: Literal["argument", "output"], number: int, axis: AxisRef) -> BoundaryOrigin:
        node = Node(role, -1, number)
        return BoundaryOrigin(role, str(self.name(node)), self.dim(node, axis))


def _constraint(operation: NamedOperation | None) -> ConstraintOrigin:
    return ConstraintOrigin(None if str(operation or "") in ("", "sharding_constraint") else operation)


@derived
def wording_of(flow: Dataflow) -> Wording:
    """The names of a dataflow's values."""
    return Wording(flow)


@derived
def _named_rows(flow: Dataflow) -> Mapping[str, int]:
    found = {}
    for number, row in enumerate(flow.rows):
        if row.name in SDY_REQUESTS or row.name == "sdy.manual_computation":
            name = origin_name(flow, number)
            if name is not None:
                found[name] = number
    return found


def einsum(rule: ShardingRule) -> str:
    """`ik,kj->ij`; a dimension of several factors is in parentheses, one of none is `1`."""
    names = {name for side in (rule.operands, rule.results) for tensor in side for dim in tensor for name in dim}
    between = "" if all(len(name) == 1 for name in names) else " "

    def dim(factors: tuple[str, ...]) -> str:
        return "1" if not factors else factors[0] if len(factors) == 1 else f"({between.join(factors)})"

    def side(tensors: tuple[tuple[tuple[str, ...], ...], ...]) -> str:
        return ",".join(between.join(map(dim, tensor)) for tensor in tensors)

    return f"{side(rule.operands)}->{side(rule.results)}"
