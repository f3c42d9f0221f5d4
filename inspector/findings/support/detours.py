"""Values that stop being cut along an axis, and are cut along it again before anybody needs the difference.

The values are those of the program after propagation. A dimension is followed from operand to result by the factors of
the operations' sharding rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....parsers.mlir import ShardingRule
from ....parsers.mlir.sdy import DimensionSharding
from ....parsers.mlir.types import TensorType
from ....parsers.record import Record
from ....parsers.sharding_syntax.mesh import AxisRef
from ...ir.array_sharding import ArraySharding
from ...ir.derived import derived
from ...ir.program import Program
from ...shardings.dataflow import Dataflow, Node
from ...shardings.dimension_use import ACROSS
from ...shardings.recorded import ASKING, sharding_at
from ...shardings.spelled import from_sdy
from ...shardings.table import propagated

MAX_STEPS = 10_000
"""Values that are followed from one."""

LOOKUP = frozenset({"stablehlo.gather"})
"""Operations whose rules tell which dimensions they take whole slices of, one for each index."""


class Detour(Record, frozen=True):
    """Dimension `dim` of `source` is cut along `axis`; from the operation of row `lost` on it is not.

    `nodes` are the values on the way with that dimension of theirs, `rows` the operations that make them. At the
    operations of `back` it is cut along the axis again. `elsewhere` is the dimension that the axis cuts meanwhile.
    """

    axis: AxisRef
    source: Node
    dim: int
    lost: int
    nodes: tuple[tuple[Node, int], ...]
    back: tuple[int, ...]
    elsewhere: int | None

    @property
    def rows(self) -> tuple[int, ...]:
        """The operations whose results are not cut."""
        return tuple(dict.fromkeys(node.row for node, _ in self.nodes))


def detours(program: Program) -> tuple[Detour, ...]:
    """All of them, in text order."""
    _, flow = propagated(program)
    return () if flow is None else _detours(flow)


@derived
def _detours(flow: Dataflow) -> tuple[Detour, ...]:
    sources = [Node("argument", -1, index) for index in range(len(flow.function.arguments))]
    sources += [result for row in range(len(flow.rows)) for result in flow.results(row)]
    found: dict[tuple[int, AxisRef], Detour] = {}
    for source in sources:
        for dim, axes in enumerate(axes_of(flow, source)):
            for axis in axes:
                for detour in _from(flow, source, dim, axis):
                    found.setdefault((detour.lost, axis), detour)
    return tuple(found.values())


def axes_of(flow: Dataflow, node: Node) -> tuple[tuple[AxisRef, ...], ...]:
    """The axes that cut each dimension of a value; none where nothing is said of it."""
    sharding = sharding_at(flow, node)
    return () if sharding is None else tuple(dim.axes for dim in sharding.dims)


def array_sharding(flow: Dataflow, node: Node) -> ArraySharding | None:
    """The sharding of a value; None where nothing is said of it."""
    sharding = sharding_at(flow, node)
    try:
        return None if sharding is None else from_sdy(sharding, flow.module.meshes).closed()
    except ValueError:
        return None


def kept_cut(flow: Dataflow, alike: Sequence[Detour], node: Node) -> ArraySharding | None:
    """Return the sharding of a value on some detours, had it kept their axes."""
    before = array_sharding(flow, alike[0].source)
    now = array_sharding(flow, node)
    kept = [(each.axis, dim) for each in alike for where, dim in each.nodes if where == node]
    if before is None or not kept:
        return None
    dims = list(now.dims) if now is not None else [DimensionSharding(())] * (max(dim for _, dim in kept) + 1)
    lost = {axis for axis, _ in kept}
    dims = [DimensionSharding(tuple(axis for axis in each.axes if axis not in lost)) for each in dims]
    for axis, dim in kept:
        if dim < len(dims) and axis not in dims[dim].axes:
            dims[dim] = DimensionSharding((*dims[dim].axes, axis))
    try:
        return replace(before, dims=tuple(dims))
    except ValueError:
        return None


@dataclass(slots=True)
class _Way:
    nodes: dict[Node, int] = field(default_factory=dict)
    back: list[int] = field(default_factory=list)


def _from(flow: Dataflow, source: Node, dim: int, axis: AxisRef) -> Iterator[Detour]:
    for row in flow.users(source):
        if axis.name in flow.rows[row].manual:
            continue
        after = _place_after(flow, row, source, dim)
        if after is None or after[0].kind != "result" or _is_cut(flow, *after, axis):
            continue
        way = _followed(flow, after, axis) if _all_agree(flow, row, source, dim, axis, {}) else None
        if way is not None:
            dims = axes_of(flow, after[0])
            elsewhere = next((other for other, axes in enumerate(dims) if axis in axes), None)
            yield Detour(axis, source, dim, row, tuple(way.nodes.items()), tuple(way.back), elsewhere)


def _followed(flow: Dataflow, first: tuple[Node, int], axis: AxisRef) -> _Way | None:
    """Follow a replicated value until it is sharded again everywhere; None if a use needs it replicated."""
    way, waiting = _Way({first[0]: first[1]}), [first]
    while waiting:
        node, dim = waiting.pop()
        users = flow.users(node)
        if not users or len(way.nodes) > MAX_STEPS:
            return None
        for row in users:
            after = _after(flow, row, node, dim, axis, way.nodes)
            if after is None:
                return None
            if _is_cut(flow, *after, axis):
                way.back.append(row)
            elif after[0].kind != "result":
                return None
            elif after[0] not in way.nodes:
                way.nodes[after[0]] = after[1]
                waiting.append(after)
            elif way.nodes[after[0]] != after[1]:
                return None
    return way


def released(flow: Dataflow, axis: AxisRef, taken: Collection[int] = ()) -> Iterator[int]:
    """Yield constraints to shardings without an axis, by row.

    Of values that are sharded along it again somewhere, elementwise operations aside; or that operations of the rows
    `taken` take.
    """
    for row, each in enumerate(flow.rows):
        start = Node("result", row, 0)
        if each.name not in ASKING or axis.name in each.manual or any(axis in axes for axes in axes_of(flow, start)):
            continue
        sharding = sharding_at(flow, start)
        if sharding is not None and axis.name in {summed.name for summed in sharding.unreduced}:
            continue  # it keeps the partial sums
        type = each.types[0] if each.types else None
        waiting = [(start, dim) for dim in range(len(type.dims))] if isinstance(type, TensorType) else []
        if _comes_to(flow, waiting, axis, taken):
            yield row


def _comes_to(flow: Dataflow, waiting: list[tuple[Node, int]], axis: AxisRef, taken: Collection[int]) -> bool:
    seen = set(waiting)
    while waiting and len(seen) < MAX_STEPS:
        node, dim = waiting.pop()
        for row in flow.users(node):
            if row in taken:
                return True
            after = _after(flow, row, node, dim, axis, {})
            if after is None or after in seen:
                continue
            if _is_cut(flow, *after, axis):
                if not taken:
                    return True
                continue
            seen.add(after)
            waiting.append(after)
    return False


def _is_cut(flow: Dataflow, node: Node, dim: int, axis: AxisRef) -> bool:
    dims = axes_of(flow, node)
    return dim < len(dims) and axis in dims[dim]


def _after(
    flow: Dataflow, row: int, node: Node, dim: int, axis: AxisRef, way: Mapping[Node, int]
) -> tuple[Node, int] | None:
    """Return the operand's dimension in the result; None if the operation needs more than a part of it."""
    after = _place_after(flow, row, node, dim)
    return after if after is not None and _all_agree(flow, row, node, dim, axis, way) else None


def _place_after(flow: Dataflow, row: int, node: Node, dim: int) -> tuple[Node, int] | None:
    """Return the operand's dimension in the result, whatever the sharding; None if it is in none, or is summed."""
    position = flow.operands(row).index(node)
    if flow.rows[row].name == "sdy.manual_computation":
        return Node("block", row, position), dim
    loop = row if flow.rows[row].name == "stablehlo.while" else flow.carried_by(row)
    if loop is not None:
        return Node("result", loop, position), dim
    if not flow.rows[row].results:
        is_end = row == len(flow.rows) - 1 and position < len(flow.function.results)
        return (Node("output", -1, position), dim) if is_end else None
    rule = rule_of_row(flow, row)
    if (
        rule is None
        or flow.rows[row].name in ACROSS - LOOKUP
        or position >= len(rule.operands)
        or len(rule.results) != 1
    ):
        return None
    tensor = rule.operands[position]
    factors = tensor[dim] if dim < len(tensor) else ()
    if len(factors) != 1 or factors[0] in (*rule.need_replication, *rule.permutation, *rule.reduction):
        return None
    place = next((place for place, other in enumerate(rule.results[0]) if other == factors), None)
    return None if place is None else (Node("result", row, 0), place)


def _all_agree(flow: Dataflow, row: int, node: Node, dim: int, axis: AxisRef, way: Mapping[Node, int]) -> bool:
    """Return whether an operation takes its operands as they are, with a dimension of one of them cut by an axis."""
    rule = rule_of_row(flow, row)
    operands = flow.operands(row)
    position = operands.index(node)
    tensor = () if rule is None or position >= len(rule.operands) else rule.operands[position]
    if rule is None or dim >= len(tensor):
        return True
    return all(
        operand is None or _agrees(flow, rule, number, operand, tensor[dim], axis, operand in way)
        for number, operand in enumerate(operands)
    )


def _agrees(
    flow: Dataflow,
    rule: ShardingRule,
    number: int,
    operand: Node,
    followed: tuple[str, ...],
    axis: AxisRef,
    is_on_the_way: bool,
) -> bool:
    """Return whether no operand requires another sharding along the axis than before.

    Where the axis cuts another dimension of a value on the way, that dimension must not be summed.
    """
    kept = {factors for result in rule.results for factors in result}
    tensor = () if number >= len(rule.operands) or _is_constant(flow, operand) else rule.operands[number]
    for factors, axes in zip(tensor, axes_of(flow, operand), strict=False):
        if axis in axes and factors != followed and not (is_on_the_way and factors in kept):
            return False
    return True


def _is_constant(flow: Dataflow, node: Node) -> bool:
    """Return whether a value may have any sharding: a constant, or a broadcast scalar."""
    if node.kind != "result":
        return False
    name, rule = flow.rows[node.row].name, rule_of_row(flow, node.row)
    spread = name == "stablehlo.broadcast_in_dim" and rule is not None and rule.operands == ((),)
    return spread or name.endswith("constant")


def rule_of_row(flow: Dataflow, row: int) -> ShardingRule | None:
    """The sharding rule of an operation."""
    return flow.records.rule(flow.rows[row])
