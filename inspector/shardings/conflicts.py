"""Conflicting shardings: operations whose values are sharded differently along one dimension.

Propagation leaves such values as they are, and the partitioner communicates. Which of them it kept to is in the shapes
that it executes the operation on; where these do not decide, nothing is said to be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...parsers.garbage import collection_paused
from ...parsers.mlir import Sharding, ShardingRule
from ...parsers.sharding_syntax.mesh import AxisRef
from ..catalog.spellings import SDY_REQUESTS
from ..dataflow.mlir import Dataflow, Node
from ..ir.derived import derived
from ..ir.program import Program
from ..report import Conflict, ShardedValue, Side, ValueDimension
from .executed import is_permuted, kept_axes
from .explained import why_axis, wording_of
from .recorded import sharding_at
from .table import node_of, propagated
from .why import overlap


def conflicts(program: Program) -> tuple[Conflict, ...]:
    """All of them, in text order."""
    _, flow = propagated(program)
    if flow is None:
        return ()
    with collection_paused():
        return tuple(_conflict(program, flow, row, *met) for row in range(len(flow.rows)) for met in _met(flow, row))


def conflicts_of(program: Program, value: ShardedValue) -> tuple[Conflict, ...]:
    """The conflicts at the operations that define or use a value, in which it is a side."""
    _, flow = propagated(program)
    node = None if flow is None else node_of(flow, value)
    if flow is None or node is None:
        return ()
    rows = dict.fromkeys((*((node.row,) if node.kind == "result" else ()), *flow.users(node)))
    met = ((row, factor, cuts) for row in rows for factor, cuts in _met(flow, row))
    return tuple(_conflict(program, flow, *each) for each in met if any(side == node for side, _ in each[2]))


def in_conflict(program: Program, values: Sequence[ShardedValue]) -> frozenset[int]:
    """Return which of some values, by number, are sides of conflicts."""
    _, flow = propagated(program)
    if flow is None:
        return frozenset()
    sides = _sides(flow)
    return frozenset(number for number, value in enumerate(values) if node_of(flow, value) in sides)


@derived
def _sides(flow: Dataflow) -> frozenset[Node]:
    with collection_paused():
        met = (cuts for row in range(len(flow.rows)) for _, cuts in _met(flow, row))
        return frozenset(node for cuts in met for node, _ in cuts)


def _kept(program: Program, flow: Dataflow, row: int, factor: str) -> frozenset[tuple[AxisRef, ...]] | None:
    """The ways to shard a factor that agree with the executed operation; None where its sizes do not decide.

    A size may be due to another axis: that is so where the axes would shard two factors, and possible where devices
    permute what is sharded so.
    """
    every = _values(flow, row).cuts
    found = {each: kept_axes(program, flow, row, each, {cut.axes for cut in cuts}) for each, cuts in every.items()}
    kept = found[factor]
    if kept is None or len(kept) != 1 or not (axes := next(iter(kept))):
        return kept
    others = [each for other, ways in found.items() if other != factor and ways and len(ways) == 1 for each in ways]
    if any(overlap(axis, each) for axis in axes for way in others for each in way):
        return None
    permuted = (is_permuted(program, flow, row, cut.value) for cut in every[factor] if cut.axes == axes)
    return None if all(permuted) else kept


def _met(flow: Dataflow, row: int) -> Iterator[tuple[str, list[tuple[Node, _Cut]]]]:
    """The factors along which the values of an operation are cut differently, with these values."""
    nodes, operands, cuts_of = _values(flow, row)
    for factor, cuts in cuts_of.items():
        if len({cut.axes for cut in cuts}) > 1:
            # The result's way is first, of operands that of most axes; of values that are cut alike the first one.
            first = max(cuts, key=lambda cut: (cut.value >= operands, len(cut.axes)))
            yield factor, [(nodes[cut.value], cut) for cut in (first, *(cut for cut in cuts if cut.axes != first.axes))]


class _Values(NamedTuple):
    """The values of an operation, the number of operands among them, and the axes of each factor in each value."""

    nodes: Sequence[Node] = ()
    operands: int = 0
    cuts: Mapping[str, Sequence[_Cut]] = {}


def _values(flow: Dataflow, row: int) -> _Values:
    rule = flow.records.rule(flow.rows[row])
    # What asks for another sharding is no conflict: that is what it is there for.
    if rule is None or flow.rows[row].name in SDY_REQUESTS:
        return _Values()
    operands = flow.operands(row)[: len(rule.operands)]
    nodes = [node for node in (*operands, *flow.results(row)[: len(rule.results)]) if node is not None]
    if None in operands or len(nodes) < 2:
        return _Values()
    shardings = tuple(sharding_at(flow, node) for node in nodes)
    ignored = (*flow.rows[row].manual, *_trivial_axes(flow))
    return _Values(nodes, len(operands), _cuts(rule, shardings, len(operands), ignored))


@derived
def _trivial_axes(flow: Dataflow) -> tuple[str, ...]:
    sizes = [axis for mesh in flow.module.meshes.values() for axis in mesh.axes]
    return tuple({name for name, size in sizes if size == 1} - {name for name, size in sizes if size > 1})


def _conflict(program: Program, flow: Dataflow, row: int, factor: str, cuts: Sequence[tuple[Node, _Cut]]) -> Conflict:
    wording = wording_of(flow)
    every = dict.fromkeys(axis for _, cut in cuts for axis in cut.axes)
    sides = [
        Side(
            ValueDimension(wording.name(node), cut.dim),
            cut.axes,
            tuple(why_axis(flow, node, axis, 1) for axis in cut.axes),
            tuple(
                why_axis(flow, node, axis, 1)
                for axis in every
                if axis not in cut.axes and wording.dim(node, axis) not in (None, cut.dim)
            ),
        )
        for node, cut in cuts
    ]
    kept = _kept(program, flow, row, factor)
    won = [side for side in sides if kept is not None and side.axes in kept]
    name, place = wording.places.operation(row)
    return Conflict(
        name,
        wording.rule(row) or "",
        factor,
        place,
        wording.span(row),
        chosen=won[0] if len(won) == 1 else None,
        rejected=() if kept is None else tuple(side for side in sides if side not in won),
        undecided=tuple(sides) if kept is None else tuple(won) if len(won) > 1 else (),
    )


class _Cut(NamedTuple):
    """The sharding of one dimension of a value, given by its number among operands and results."""

    value: int
    dim: int
    axes: tuple[AxisRef, ...]


@lru_cache(maxsize=1 << 14)
def _cuts(
    rule: ShardingRule, shardings: Sequence[Sharding | None], operands: int, ignored: Sequence[str]
) -> Mapping[str, Sequence[_Cut]]:
    """The sharding of each factor's dimension in each value of an operation that has it.

    `shardings` are those of the operands, the first `operands` ones, then of the results. In a large program most
    operations have been met before.
    """
    found: dict[str, list[_Cut]] = {}
    special = {*rule.need_replication, *rule.permutation}
    tensors = (*rule.operands[:operands], *rule.results)
    for value, (sharding, tensor) in enumerate(zip(shardings, tensors, strict=False)):
        for dim, factors in enumerate(tensor):
            # Of a dimension of several factors it is not known which of them an axis shards.
            if len(factors) == 1 and factors[0] not in special:
                axes = sharding.dims[dim].axes if sharding is not None and dim < len(sharding.dims) else ()
                # What a shard_map takes in is one device's part: along its own axes nothing is cut any more.
                axes = tuple(axis for axis in axes if axis.name not in ignored)
                found.setdefault(factors[0], []).append(_Cut(value, dim, axes))
    return found
