"""The collectives of the compiled program that the partitioner inserted, and what they are there for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from ....parsers.mlir.types import TensorType
from ....parsers.source import Frame
from ...report import (
    WRITTEN,
    Collective,
    CollectiveCause,
    Kind,
    Report,
    ValueName,
)
from ...shardings.collective_causes import causes_of, is_inserted
from ...shardings.dataflow import Dataflow, Node
from ...shardings.explained import wording_of
from .compiled import in_hlo, is_combined
from .detours import array_sharding


def inserted_for(
    report: Report, flow: Dataflow, nodes: Iterable[tuple[Node, int]], kind: Kind, axis: str, source: Node | None = None
) -> Collective | None:
    """The collective of that kind along an axis by the partitioner that gives one of some values, or stands for it.

    One with the shape of a value's part on each device; of several, the one that moves their `source`, or the first of
    them, or else the one whose stack has most in common with that of a value: a helper's line is that of all its calls.
    """
    wanted = [node for node, _ in nodes]
    shapes = {shape for node in wanted if (shape := local_shape(flow, node)) is not None}
    moved = (c for c in in_hlo(report, kind) if c.origin not in WRITTEN)
    found = [c for c in moved if axis in {each.name for each in c.axes or ()}]
    alike = [c for c in found if shapes & {type.shape for type in c.result_types}]
    several = alike or found
    if len(several) > 1 and source is not None:
        names = [wording_of(flow).name(node) for node in (source, *wanted)]
        firsts = {
            c: min((names.index(each) for each in _moved_by(report, c) if each in names), default=None) for c in several
        }
        known = [(first, number, c) for number, (c, first) in enumerate(firsts.items()) if first is not None]
        if known:
            return min(known)[2]
    stacks = {wording_of(flow).places.operation(node.row)[1].stack for node in wanted if node.row >= 0}
    shared = {c: max((_in_common(c.source.stack, stack) for stack in stacks), default=0) for c in found}
    nearest = max(several, key=lambda c: shared[c], default=None)
    here = max(found, key=lambda c: shared[c], default=None)
    if here is not None and nearest is not None and shared[here] == len(here.source.stack) > shared[nearest]:
        return here  # one of several steps: what is gathered along another dimension first has another shape
    return nearest if alike or (nearest is not None and shared[nearest]) else None


def _moved_by(report: Report, collective: Collective) -> Iterator[ValueName]:
    """The values of the propagated program that a collective moves."""
    causes = causes_of(report.program, collective)
    yield from (each.moved.value for each in causes if each.moved is not None)


def _in_common(one: tuple[Frame, ...], other: tuple[Frame, ...]) -> int:
    """Return how many innermost frames two stacks have in common."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: (pair[0].file, pair[0].line) == (pair[1].file, pair[1].line), pairs))


def local_shape(flow: Dataflow, node: Node) -> tuple[int, ...] | None:
    """The shape of one device's part of a result."""
    types = flow.rows[node.row].types if node.kind == "result" else ()
    type = types[node.number] if node.number < len(types) else None
    if not isinstance(type, TensorType) or None in type.dims:
        return None
    shape = tuple(size for size in type.dims if size is not None)
    sharding = array_sharding(flow, node)
    try:
        return shape if sharding is None else sharding.local_shape(shape)
    except ValueError:
        return shape  # on one device alone


def inserted_collectives(report: Report) -> Iterator[tuple[Collective, tuple[CollectiveCause, ...]]]:
    """The collectives of the compiled program that the partitioner inserted, each with what it is there for."""
    for collective in in_hlo(report):
        if collective.origin == "partitioner":
            yield collective, causes_of(report.program, collective)


def moved_by_the_partitioner(report: Report) -> Iterator[tuple[Collective, CollectiveCause]]:
    """The same, and those that were merged with what the user wrote, once for each operation that they are there for.

    Of those that were not merged, for the likeliest one.
    """
    for collective in in_hlo(report):
        if collective.origin != "unknown" and is_inserted(collective):
            causes = causes_of(report.program, collective)
            for cause in causes if is_combined(collective) else causes[:1]:
                yield collective, cause


def dimension_of(cause: CollectiveCause) -> str:
    """Return the communicated dimension in words, without the numbers of the propagated program."""
    if cause.moved is None:
        return ""
    made_by = cause.moved.made_by
    return f"dimension {cause.moved.dim} of {cause.moved.value if made_by is None else f'the {made_by} result'}"
