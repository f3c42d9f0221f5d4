"""What a collective that the partitioner inserted is doing there.

It belongs to an operation of the propagated program, whose sharding rule says how the dimensions of operands and
results belong together. From their shardings follows which of them needs communication:

- a *sum*: a dimension that the operation reduces is cut along the collective's axes; each device has a part of the sum;
- a *reshard*: a value is cut along the axes where the operation, for the sake of another value, needs it otherwise;
- a *move*: the operation works across a cut dimension, as a slice, a concatenation or a lookup in a table does;
- its *own*: the partitioner divides work along axes that nobody asked for here, and puts the parts together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ...parsers.errors import ParseError
from ...parsers.mesh_syntax import AxisRef
from ...parsers.mlir import ShardingRule, TensorType, names
from ...parsers.mlir.sdy import DimensionSharding, Sharding
from ..capture.model import Capture, Stage
from ..op_tags import tag_of_location, tags_in
from ..report import Collective, Confidence, SourcePlace
from .dataflow import Dataflow, Node
from .explained import Why, Wording, why_axis, wording_of
from .gradients import BACKWARD, is_gradient
from .sharding import ArraySharding
from .spelled import as_spec, from_sdy
from .table import propagated
from .why import overlap

Effect = Literal["sum", "reshard", "move", "own"]

ACROSS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("slice", "dynamic_slice", "dynamic_update_slice", "concatenate", "pad", "reverse", "gather", "scatter"),
        *("sort", "convolution", "reduce_window", "select_and_scatter", "cholesky", "triangular_solve", "fft"),
    )
)
"""Operations that need elements of other parts of a dimension."""

PASSING = frozenset({"transpose", "convert", "reshape", "sharding_constraint", "optimization_barrier"})
"""Operations that only hand on what is moved."""

FARTHEST = 3
"""Of those, how many in a row are followed."""

MOST_OPERATIONS = 16
"""Operations of one collective, merged from several, that are looked at."""


@dataclass(frozen=True, slots=True)
class CollectiveCause:
    """Why a collective is there: what it does for one operation.

    `value` is what it communicates, in words, which propagation left as `before` and the operation needs as `after`
    (None for a sum and where that is not one sharding). `origins` are why it is cut along the collective's axes,
    `against` why another value of the operation is cut otherwise. `confidence` tells how the operation was found.
    `needed` is true of the gradients of weights: each device has that of its part of the batch.
    """

    effect: Effect
    operation: str
    rule: str | None
    place: SourcePlace
    value: str
    before: str | None
    after: str | None
    origins: tuple[Why, ...]
    against: tuple[Why, ...]
    needed: bool
    confidence: Confidence
    elements: int | None = None
    """Of the value on one device."""


def causes_of(capture: Capture, collective: Collective) -> tuple[CollectiveCause, ...]:
    """Why a collective of HLO is there, for each of the operations that it was merged from.

    Empty for one that the user wrote, and where propagation was not recorded.
    """
    stage, flow = propagated(capture)
    text = capture.stage(collective.stage)
    if stage is None or flow is None or text is None or text.dialect != "hlo" or collective.origin == "user":
        return ()
    rows, confidence = _rows(stage, flow, text, collective)
    found = []
    for row in rows[:MOST_OPERATIONS]:
        cause = _Situation(flow, row, collective, confidence).cause()
        results = [Node("result", row, index) for index in range(len(flow.rows[row].results))]
        found.append(cause if cause.effect != "own" else _at_a_user(flow, results, collective, confidence) or cause)
    if not found:
        arguments = [
            Node("argument", -1, index)
            for index in range(len(flow.function.arguments))
            if wording_of(flow).places.argument(index) == collective.op_name
        ]
        cause_there = _at_a_user(flow, arguments, collective, "name")
        found += [] if cause_there is None else [cause_there]
    return tuple(found)


def _at_a_user(
    flow: Dataflow, moved: Sequence[Node], collective: Collective, confidence: Confidence
) -> CollectiveCause | None:
    """The cause at an operation that uses what is moved: newer versions of XLA name a collective after its operand.

    Of several, the one on the line, and in the pass, of what uses the collective's result.
    """
    frame = collective.source.frame
    found: list[tuple[tuple[bool, bool], CollectiveCause]] = []
    reached = list(moved)
    for _ in range(FARTHEST):
        users = [(node, row) for node in reached for row in flow.users(node)]
        for node, row in users[:MOST_OPERATIONS]:
            situation = _Situation(flow, row, collective, confidence)
            cause = situation.cause()
            if cause.effect != "own" and situation.is_about(node):
                same_line = frame is not None and cause.place.frame == frame
                is_backward = BACKWARD in situation.name
                found.append(((not same_line, is_backward != (collective.direction == "backward")), cause))
        reached = [Node("result", row, 0) for _, row in users if flow.rows[row].name.rpartition(".")[2] in PASSING]
        if found or not reached:
            break
    return min(found, key=lambda item: item[0], default=(None, None))[1]


def _rows(stage: Stage, flow: Dataflow, text: Stage, collective: Collective) -> tuple[Sequence[int], Confidence]:
    """The operations that a collective belongs to, by their numbers, else by name and line."""
    tags = tags_in(text, collective.span)
    by_tag = _rows_by_tag(stage, flow)
    exact = [row for tag in tags for row in by_tag.get(tag, ())[:1]]
    if exact:
        return exact, "exact"
    frame = collective.source.frame
    line = None if frame is None else (frame.file, frame.line)
    named = _rows_by_name(flow).get(((collective.op_name or "").rstrip(":"), line), ())
    return named[:1], "name" if len(named) == 1 else "shape"


@lru_cache(maxsize=8)
def _rows_by_tag(stage: Stage, flow: Dataflow) -> Mapping[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for number, row in enumerate(flow.rows):
        tag = tag_of_location(stage, row.location)
        if tag is not None and row.results and not row.name.endswith("constant"):
            found.setdefault(tag, []).append(number)
    # One operation of JAX's may be several here, as a call is: the first one with a sharding rule stands for them.
    return {tag: tuple(rows) for tag, rows in found.items()}


@lru_cache(maxsize=8)
def _rows_by_name(flow: Dataflow) -> Mapping[tuple[str, tuple[str, int] | None], tuple[int, ...]]:
    wording = wording_of(flow)
    found: dict[tuple[str, tuple[str, int] | None], list[int]] = {}
    for number, row in enumerate(flow.rows):
        if not row.results:
            continue
        known = names(flow.text.location(row.location))
        frame = wording.places.operation(number)[1].frame
        key = ((known[0] if known else "").rstrip(":"), None if frame is None else (frame.file, frame.line))
        found.setdefault(key, []).append(number)
    return {key: tuple(rows) for key, rows in found.items()}


@dataclass(frozen=True, slots=True)
class _Cut:
    """A dimension of a value of the operation, the factors that it consists of, and the axes that it is cut along."""

    node: Node
    dim: int
    factors: tuple[str, ...]
    axes: tuple[AxisRef, ...]
    is_operand: bool


class _Situation:
    """An operation and its values, seen from a collective."""

    def __init__(self, flow: Dataflow, row: int, collective: Collective, confidence: Confidence) -> None:
        self.flow = flow
        self.row = row
        self.collective = collective
        self.confidence = confidence
        self.wording: Wording = wording_of(flow)
        self.axes = tuple(map(_axis, collective.axes or ()))
        self.rule = self._rule()
        self.cuts = tuple(self._cuts())

    @property
    def name(self) -> str:
        """All of the operation's name, with the path of transformations."""
        found = names(self.flow.text.location(self.flow.rows[self.row].location))
        return found[0] if found else ""

    def is_about(self, node: Node) -> bool:
        """Whether it is this operand that is cut along the collective's axes."""
        return any(cut.node == node and cut.is_operand and self._along(cut.axes) for cut in self.cuts)

    def cause(self) -> CollectiveCause:
        """What the collective does for the operation."""
        cut = [each for each in self.cuts if self._along(each.axes)]
        if self.collective.kind in ("all-reduce", "reduce-scatter"):
            summed = [each for each in cut if each.is_operand and self._is_reduced(each.factors)]
            if summed:
                return self._cause("sum", summed[0], against=(), origins=summed)
        for each in sorted(cut, key=self._distance):
            others = [
                other
                for other in self.cuts
                if other is not each and set(other.factors) & set(each.factors) and not self._along(other.axes)
            ]
            if others:
                elsewhere = [other for other in cut if other is not each and not set(other.factors) & set(each.factors)]
                return self._cause("reshard", each, against=elsewhere or others, origins=[each])
        across = sorted((each for each in cut if self._is_crossed(each)), key=self._distance)
        if across:
            return self._cause("move", across[0], against=(), origins=[across[0]])
        rest = sorted(cut, key=self._distance)[:1]
        return self._cause("own", rest[0] if rest else None, against=(), origins=rest)

    def _cause(
        self, effect: Effect, cut: _Cut | None, against: Sequence[_Cut], origins: Sequence[_Cut]
    ) -> CollectiveCause:
        name, place = self.wording.places.operation(self.row)
        sharding = None if cut is None else self._sharding(cut.node)
        after = None
        if effect == "reshard" and cut is not None and sharding is not None:
            after = as_spec(self._without_axes(sharding, cut, against))
        return CollectiveCause(
            effect=effect,
            operation=name,
            rule=self.wording.rule(self.row),
            # What is called from several places has no line of its own.
            place=place if place.stack else self.collective.source,
            value="" if cut is None else self._words(cut),
            before=None if sharding is None else as_spec(sharding),
            after=after,
            origins=tuple(dict.fromkeys(why for each in origins for why in self._why(each, all_axes=False))),
            against=tuple(dict.fromkeys(why for each in against for why in self._why(each, all_axes=True))),
            needed=effect == "sum" and is_gradient(self.flow, self.row),
            confidence=self.confidence,
            elements=None if cut is None else self._local_size(cut.node),
        )

    def _why(self, cut: _Cut, *, all_axes: bool) -> Iterator[Why]:
        axes = [axis for axis in cut.axes if all_axes or self._along((axis,))]
        for axis in axes:
            yield why_axis(self.flow, cut.node, axis)

    def _words(self, cut: _Cut) -> str:
        side = "operand" if cut.is_operand else "result"
        return f"{side} {self.wording.name(cut.node)} dim {cut.dim}"

    def _without_axes(self, sharding: ArraySharding, cut: _Cut, against: Sequence[_Cut]) -> ArraySharding:
        """The value as the operation needs it: not along these axes there, but where another value has them."""
        wanted = {factor: other.axes for other in against for factor in other.factors}
        dims = []
        for dim, own in enumerate(sharding.dims):
            factors = self._factors_of(cut.node, dim)
            kept = tuple(axis for axis in own.axes if not self._along((axis,)))
            given = next((wanted[factor] for factor in factors if factor in wanted), ()) if dim != cut.dim else ()
            moved = tuple(axis for axis in given if self._along((axis,)) and axis not in kept)
            dims.append(DimensionSharding((*kept, *moved) if self.collective.kind == "all-to-all" else kept))
        return ArraySharding(sharding.mesh, tuple(dims), manual=sharding.manual)

    def _factors_of(self, node: Node, dim: int) -> tuple[str, ...]:
        return next((cut.factors for cut in self.cuts if cut.node == node and cut.dim == dim), ())

    def _distance(self, cut: _Cut) -> tuple[bool, bool]:
        """What has as many elements on a device as go into the collective comes first, operands before results."""
        return self._local_size(cut.node) not in self._sizes(), not cut.is_operand

    def _sizes(self) -> set[int]:
        shapes = (text.partition("[")[2].rstrip("]") for text in self.collective.operand_types)
        sizes = [math.prod(int(size) for size in shape.split(",") if size.isdecimal()) for shape in shapes]
        return {*sizes, sum(sizes)}

    def _local_size(self, node: Node) -> int | None:
        type, sharding = self._type(node), self._sharding(node)
        if type is None or sharding is None or None in type.dims or len(type.dims) != len(sharding.dims):
            return None
        return math.prod(sharding.local_shape([dim for dim in type.dims if dim is not None]))

    def _type(self, node: Node) -> TensorType | None:
        match node.kind:
            case "argument":
                type = self.flow.function.arguments[node.index].type
            case "result" if node.index < len(self.flow.rows[node.row].types):
                type = self.flow.rows[node.row].types[node.index]
            case _:
                return None
        return type if isinstance(type, TensorType) else None

    def _sharding(self, node: Node) -> ArraySharding | None:
        sharding = self.flow.sharding(node)
        try:
            return None if sharding is None else from_sdy(sharding, self.flow.module.meshes).closed()
        except ValueError:
            return None

    def _rule(self) -> ShardingRule | None:
        try:
            return self.flow.operation(self.row).annotations.sharding_rule
        except ParseError:
            return None

    def _cuts(self) -> Iterator[_Cut]:
        operands = self.flow.operands(self.row)
        results = tuple(Node("result", self.row, index) for index in range(len(self.flow.rows[self.row].results)))
        factors = ((), ()) if self.rule is None else (self.rule.operands, self.rule.results)
        for side, nodes, tensors in ((True, operands, factors[0]), (False, results, factors[1])):
            for index, node in enumerate(nodes):
                sharding: Sharding | None = None if node is None else self.flow.sharding(node)
                tensor = tensors[index] if index < len(tensors) else ()
                dims = () if sharding is None else sharding.dims
                for dim in range(max(len(dims), len(tensor))):
                    axes = dims[dim].axes if dim < len(dims) else ()
                    if node is not None:
                        yield _Cut(node, dim, tensor[dim] if dim < len(tensor) else (), axes, side)

    def _along(self, axes: Sequence[AxisRef]) -> bool:
        return any(overlap(own, axis) for own in axes for axis in self.axes)

    def _is_crossed(self, cut: _Cut) -> bool:
        """Whether the operation goes across the parts of a dimension."""
        if self.rule is None or self.flow.rows[self.row].name in ACROSS:
            return True
        kept = {*self.rule.need_replication, *self.rule.permutation}
        return not kept.isdisjoint(cut.factors)

    def _is_reduced(self, factors: tuple[str, ...]) -> bool:
        return self.rule is not None and not set(factors).isdisjoint(self.rule.reduction)


def _axis(text: str) -> AxisRef:
    """An axis as `Collective.axes` spells it, `x` or `x:(1)2`."""
    name, colon, sub = text.rpartition(":(")
    pre, closed, size = sub.partition(")")
    if colon and closed and pre.isdecimal() and size.isdecimal():
        return AxisRef(name, (int(pre), int(size)))
    return AxisRef(text)
