"""The collective that the partitioner inserted for some values of the propagated program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....parsers.mlir.types import TensorType
from ...report import Collective, CollectiveCause, Kind, Report
from ...shardings.collective_causes import causes_of, is_inserted
from ...shardings.dataflow import Dataflow, Node
from ...shardings.explained import wording_of
from .compiled import is_combined
from .detours import array_sharding


def inserted_for(
    report: Report, flow: Dataflow, nodes: Iterable[tuple[Node, int]], kind: Kind, axis: str
) -> Collective | None:
    """The collective of that kind along an axis by the partitioner that gives one of some values, or stands for it.

    One with the shape of a value's part on each device; of several, one from a line of theirs.
    """
    wanted = [node for node, _ in nodes]
    lines = {line for node in wanted if (line := _line(flow, node)) is not None}
    shapes = {shape for node in wanted if (shape := local_shape(flow, node)) is not None}
    found = [
        c
        for c in report.collectives
        if c.stage == "hlo" and c.kind == kind and c.origin != "user" and axis in {each.name for each in c.axes or ()}
    ]
    alike = [c for c in found if shapes & {type.shape for type in c.result_types}]
    here = [c for c in alike or found if (frame := c.source.frame) is not None and (frame.file, frame.line) in lines]
    return next(iter(here or alike), None)


def _line(flow: Dataflow, node: Node) -> tuple[str, int] | None:
    frame = wording_of(flow).places.operation(node.row)[1].frame if node.row >= 0 else None
    return None if frame is None else (frame.file, frame.line)


def local_shape(flow: Dataflow, node: Node) -> tuple[int, ...] | None:
    """The shape of one device's part of a result."""
    type = flow.rows[node.row].types[node.number] if node.kind == "result" else None
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
    for collective in report.collectives:
        if collective.stage == "hlo" and collective.origin == "partitioner":
            yield collective, causes_of(report.program, collective)


def moved_by_the_partitioner(report: Report) -> Iterator[tuple[Collective, CollectiveCause]]:
    """The same, and those that were merged with what the user wrote, once for each operation that they are there for.

    Of those that were not merged, for the likeliest one.
    """
    for collective in report.collectives:
        if collective.stage == "hlo" and collective.origin != "unknown" and is_inserted(collective):
            causes = causes_of(report.program, collective)
            for cause in causes if is_combined(collective) else causes[:1]:
                yield collective, cause


def dimension_of(cause: CollectiveCause) -> str:
    """What a collective communicates, as one would say it: without the numbers of the propagated program."""
    return "" if cause.moved is None else f"dimension {cause.moved.dim} of {cause.moved.name}"
