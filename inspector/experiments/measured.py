"""The costs of a program, as experiments compare it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...parsers.sharding_syntax.mesh import AxisRef, join_axes
from ..capture.model import UPDATED
from ..cost.products import products_of
from ..findings.compiled import in_hlo
from ..ir.array_sharding import ArraySharding
from ..ir.name_scopes import keys_of_name
from ..report import Collective, Measured, Report, ShardedValue
from ..units import known_sum


def measured(report: Report) -> Measured:
    """Return what the program of a report costs per device and step."""
    collectives = in_hlo(report)
    memory, peak, products = report.capture.memory, report.peak, products_of(report.program)
    sent = [(over(each), each.step_bytes) for each in collectives]
    counts, by_axes = Counter[str](), Counter[str]()
    for each in collectives:
        counts[f"{each.kind} {over(each)}"] += each.executions or 1
    for axes, size in sent:
        by_axes[axes] += size or 0
    return Measured(
        collectives=tuple(counts.items()),
        by_axes=tuple(by_axes.items()),
        bytes=known_sum(size for _, size in sent) if report.capture.stage("hlo") is not None else None,
        seconds=None if report.cost is None else report.cost.total,
        memory=None if peak is None else peak.peak or peak.bytes,
        flops=sum(each.flops for each in products) if products else None,
        held=None if memory is None else known_sum((memory.arguments, memory.outputs)),
        later=sum(later(report)),
    )


def over(collective: Collective) -> str:
    """The axes over which a collective runs, as text."""
    return join_axes(collective.axes or ()) or "?"


def later(report: Report) -> Iterator[int]:
    """Bytes that a step sends to get its arguments from the results of the step before, for each result.

    State goes round: a result that is left sharded in another way than the argument that it becomes is resharded by the
    next step, which a measurement of one step does not see.
    """
    for result, argument in _tied_in(report):
        if result.sharding is not None and argument.sharding is not None and argument.local_type is not None:
            share = _moved_share(result.sharding, argument.sharding)
            yield int((argument.local_type.bytes or 0) * share)


def received_next(report: Report) -> tuple[tuple[str, str], ...]:
    """Return the paths of arguments that the next step gets sharded in another way, with their specs then."""
    pairs = ((argument.name, argument.spec, result.spec) for result, argument in _tied_in(report))
    return tuple((name, spec) for name, now, spec in pairs if spec is not None and spec != now)


def _tied_in(report: Report) -> Iterator[tuple[ShardedValue, ShardedValue]]:
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    return tied([each for each in report.shardings if each.role == "output"], arguments)


def tied(
    results: Iterable[ShardedValue], arguments: Sequence[ShardedValue]
) -> Iterator[tuple[ShardedValue, ShardedValue]]:
    """The results that are the next step's arguments: of the same type, and the same end of the path."""
    free = list(arguments)
    for result in results:
        alike = [each for each in free if each.type == result.type and each.type.dims]
        common = [(_common(each.name, result.name), each) for each in alike]
        best = max(common, key=lambda pair: pair[0], default=None)
        if best is not None and best[0]:
            free.remove(best[1])
            yield result, best[1]


def _common(one: str, other: str) -> int:
    """Return how many last steps two paths share."""
    paths = [list(reversed(keys_of_name(each.removeprefix(UPDATED))[1:])) for each in (one, other)]
    return next((n for n, (a, b) in enumerate(zip(*paths, strict=False)) if a != b), min(map(len, paths)))


def _moved_share(now: ArraySharding, wanted: ArraySharding) -> float:
    """Return the bytes that a device receives to reshard a value, as a share of the part that it then has."""
    axes = [dim.axes for dim in now.dims], [dim.axes for dim in wanted.dims]
    if len(axes[0]) != len(axes[1]) or all(b[: len(a)] == a for a, b in zip(*axes, strict=True)):
        return 0.0  # the same, or sliced further
    leaving: set[AxisRef] = {axis for a, b in zip(*axes, strict=True) for axis in a if axis not in b}
    parts = now.size_along(leaving)
    return (parts - 1) / parts if parts > 1 else 1.0
