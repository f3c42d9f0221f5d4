"""The tables of shardings, and of the axes over which values vary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from ...capture.model import Value
from ...report import Report, ShardedValue, VariableVariance
from ...report.places import StagePlace
from ...report.position import NO_SITES, CallSites, call_sites, with_call_site
from ...units import format_bytes, grouped, plural
from ..collective_rows import INDEX, common_name
from ..table import Cell, Column, Piece, Row, Table, axes_cell, axis_piece, size_cell
from ..why_lines import conflict_lines, why_line
from .captured import unrequested

MAX_CHAINS = 12
MAX_REPLICATED = 5
MAX_CONFLICTS = 8
"""Lines of each part under the table."""

EMPTY = "Not available: the program has no mesh, or its propagation was not recorded."


def shardings(report: Report) -> Table:
    """Boundary shardings, equal ones as one row, and the propagation paths of shardings that nothing requested."""
    rows = list(_alike(report.shardings, report))
    differing = sum(value.agrees is False for value in report.shardings)
    title = "Shardings in StableHLO, before propagation" if only_written(report) else "Shardings after propagation"
    title += f": {differing} {'differs' if differing == 1 else 'differ'} from requested (✗)" if differing else ""
    declared = _declared(report)
    made = [_row(count, value, name, report, declared) for count, value, name in rows]
    under = partial(_under, rows, report)
    return _table(made, title if rows else "", partial(under, MAX_CHAINS, MAX_CONFLICTS), under)


def only_written(report: Report) -> bool:
    """Return whether only what StableHLO says of shardings is known."""
    return bool(report.shardings) and all(value.stage == "stablehlo" for value in report.shardings)


def values_table(
    report: Report, listed: Iterable[ShardedValue], spec: Callable[[ShardedValue], str] | None = None
) -> Table:
    """The values that are listed, one by one; `spec` is what each has at a step of the propagation."""
    shown = list(listed)
    sites, declared = call_sites(value.source for value in shown), _declared(report)
    return _table([_row(1, value, value.name, report, declared, spec, sites) for value in shown])


def _table(
    rows: Sequence[Row],
    heading: str = "",
    notes: Callable[[], Iterable[Cell]] = tuple,
    notes_in_full: Callable[[], Iterable[Cell]] | None = None,
) -> Table:
    return Table(
        id="shardings",
        title="Shardings",
        key="4",
        columns=(
            Column("", where="documents"),
            Column("", 10, 1),
            Column("value", 19, 10),
            Column("type", 12, 2),
            Column("requested", 24, 8),
            Column("actual", 24, 9),
            Column("per device", 12, 3),
            Column("replicated", 8, 4, align="right"),
            Column("from", 12, 7, where="screen"),
        ),
        rows=tuple(rows),
        heading=heading,
        empty_text=EMPTY,
        notes=notes,
        notes_in_full=notes_in_full,
        most=40,
        unit="value",
    )


def _row(
    count: int,
    value: ShardedValue,
    name: str,
    report: Report,
    declared: Mapping[tuple[str, str], Value],
    spec: Callable[[ShardedValue], str] | None = None,
    sites: CallSites = NO_SITES,
) -> Row:
    actual = value.spec or "?" if spec is None else spec(value)
    same = Piece(actual, "aside" if spec is not None and actual != value.spec else "")
    cells: tuple[Cell, ...] = (
        f"{count}×" if count > 1 else "",
        Piece(value.role, "aside"),
        name,
        str(value.type),
        _requested(value, declared.get((value.role, value.name))),
        Piece(f"{actual} ✗", "error") if value.agrees is False else same,
        str(value.local_type or (value.type if value.spec else "?")),
        size_cell(value.replicated_bytes),
        with_call_site(sites, value.source, value.source.text(report.script), report.script),
    )
    return Row(cells, value)


def _declared(report: Report) -> Mapping[tuple[str, str], Value]:
    sides = {"argument": report.capture.arguments, "output": report.capture.outputs}
    return {(role, value.path): value for role, values in sides.items() for value in values}


def _requested(value: ShardedValue, declared: Value | None) -> Cell:
    """The requested sharding, with the layout in memory that goes with it, and that an argument is donated."""
    if declared is None:
        return value.requested or ""
    layout = "" if declared.layout is None else f", layout {declared.layout}"
    donated = (Piece(", donated", "warning"),) if declared.donated else ()
    unasked = () if value.requested else (Piece(unrequested(declared), "aside"),)
    return (*unasked, Piece(f"{value.requested or ''}{layout}"), *donated)


def _under(
    rows: Sequence[tuple[int, ShardedValue, str]],
    report: Report,
    chains: int | None = None,
    disagreements: int | None = None,
) -> Iterable[Cell]:
    """The reasons for unconstrained shardings, the values with most memory in copies, and the conflicts."""
    unasked = [
        why_line(found, name, report)
        for _, value, name in rows
        if value.role in ("argument", "output") and (value.requested is None or value.agrees is False)
        for found in report.on_demand.why(value, None)
    ]
    yield from (Piece(line, "aside") for line in unasked[:chains])
    if more := len(unasked) - len(unasked[:chains]):
        yield Piece(f"and {plural(more, 'more reason')}", "aside")
    yield from (Piece(line, "aside") for line in islice(_replicated(report), MAX_REPLICATED))
    distinct = list(dict.fromkeys(tuple(conflict_lines(each, report)) for each in report.on_demand.conflicts()))
    for lines in distinct[:disagreements]:
        yield from lines
    if more := len(distinct) - len(distinct[:disagreements]):
        yield Piece(f"and {plural(more, 'more conflict')}", "aside")


def _replicated(report: Report) -> Iterator[str]:
    """The values with most memory in copies, equal ones as one."""
    by_size = grouped((size, value) for value in report.on_demand.values() if (size := value.replicated_bytes))
    for size in sorted(by_size, reverse=True):
        alike = Counter(f"{each.name}{_place(each, report)}, {each.type} as {each.spec}" for each in by_size[size])
        for text, count in alike.items():
            times = f"{count} × " if count > 1 else ""
            yield f"replicated: {format_bytes(size)} per device{' each' if count > 1 else ''}, {times}{text}"


def _alike(found: Iterable[ShardedValue], report: Report) -> Iterable[tuple[int, ShardedValue, str]]:
    """Neighbours that differ only in the indices in their names as one, `layers[*]['w']`, in the order of the first."""
    groups: dict[tuple[object, ...], list[tuple[ShardedValue, str]]] = {}
    listed = list(found)
    sites = call_sites(value.source for value in listed)
    for value in listed:
        place = "" if value.role == "argument" else _place(value, report, sites)
        stem = INDEX.sub("[#]", value.name)
        key = (value.role, stem, place, value.requested, value.spec, value.type, value.agrees, value.replicated_bytes)
        groups.setdefault(key, []).append((value, place))
    for members in groups.values():
        first, place = members[0]
        yield len(members), first, f"{common_name([member.name for member, _ in members])}{place}"


def _place(value: ShardedValue, report: Report, sites: CallSites = NO_SITES) -> str:
    line = with_call_site(sites, value.source, value.source.text(report.script), report.script)
    return f" ({line})" if line else ""


def variance(report: Report) -> Table:
    """Each value inside a shard_map; minor where nothing happens: no axis enters or leaves, and no type hides one."""
    happening = [value for value in report.variance if value.changes_axes]
    inferred = [value for value in report.variance if value.inferred]
    where = ", as the check is off" if len(inferred) == len(report.variance) else " where the check is off"
    note = f" (inferred{where})" if inferred else ""
    heading = f"Variance{note}: {plural(len(report.variance), 'value')}, {len(happening)} at which it changes"

    def selection(value: object) -> StagePlace | None:
        span = report.equation_span(value.equation) if isinstance(value, VariableVariance) else None
        return None if span is None else StagePlace("jaxpr", span.start)

    return Table(
        id="variance",
        title="Variance",
        key="6",
        columns=(
            Column("value", 19, 8),
            Column("type", 9, 6),
            Column("varies over", 7, 10),
            Column("removed", 4, 4),
            Column("entered", 14, 9),
            Column("from", 8, 2),
        ),
        rows=tuple(Row(_cells(value, report.script), value, not value.changes_axes) for value in report.variance),
        heading=heading if happening else "",
        empty_text=(
            "Not available: no jaxpr was recorded."
            if report.capture.stage("jaxpr") is None
            else "No shard_map in this program."
        ),
        most=12,
        unit="value",
        selection=selection,
        first=next((number for number, value in enumerate(report.variance) if value.changes_axes), 0),
    )


def _cells(value: VariableVariance, script: str | None) -> tuple[Cell, ...]:
    ways: dict[str, dict[str, None]] = {}
    for entry in value.entered:
        ways.setdefault(f"by {entry.by} {entry.source.text(script)}".rstrip(), {})[entry.axis] = None
    return (
        f"{value.value} = {value.primitive}",
        str(value.type.array),
        _over(value),
        axes_cell(value.left),
        "; ".join(f"{', '.join(axes)} {way}" for way, axes in ways.items()),
        value.source.text(script),
    )


def _over(value: VariableVariance) -> tuple[Piece, ...]:
    """`x, y unreduced, z reduced but may vary over w`."""
    parts = [(axis, "") for axis in value.varying]
    parts += [(axis, " unreduced") for axis in value.unreduced] + [(axis, " reduced") for axis in value.reduced]
    varying = [piece for axis, word in parts for piece in (Piece(", "), axis_piece(axis), Piece(word))][1:]
    hidden = (Piece(" but may vary over ", "error"), *axes_cell(value.hidden)) if value.hidden else ()
    return (*(varying or [Piece("none", "aside")]), *hidden)
