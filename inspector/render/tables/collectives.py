"""The collectives of what runs, or of what the user wrote; and why the inserted ones are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ....parsers.sharding_syntax.mesh import join_axes
from ...capture.model import STAGES
from ...report import WRITTEN, Collective, Report, UncountedCommunication
from ...units import grouped, known_sum, plural
from ..collective_rows import CollectiveRow, most_wire, rows_of, total_seconds, total_wire
from ..table import Cell, Column, Piece, Row, Table, axes_cell, share_cell, size_cell, time_cell, titled
from ..why_lines import cause_line, remedy_line
from .communication import bounded_text, sent_text, widened_text

UNPARTITIONED = ("stablehlo", "hlo-before")

MAX_UNCOUNTED = 4
"""Descriptions of communication without collectives in one line."""

FOLLOWS = "│"
"""The sign of a row that belongs to an unfolded one above it."""

Key = tuple[str, int]


def key_of(collective: Collective) -> Key:
    """Stage and offset, which identify a collective."""
    return collective.stage, collective.span.start


def programs(report: Report) -> list[str]:
    """The stages whose collectives are listed, the preferred one first."""
    there = {stage.name for stage in report.on_demand.listed_stages()}
    partitioned = [name for name in reversed(STAGES) if name not in UNPARTITIONED]
    return [name for name in (*partitioned, *UNPARTITIONED) if STAGES[name].title and name in there]


def collectives(report: Report, program: str | None = None, unfolded: Collection[Key] = ()) -> Table:
    """The collectives of one program, largest total first. Alike collectives are one row, unless it is unfolded.

    The value of a row are its collectives.
    """
    stage = program or next(iter(programs(report)), None)
    listed = [collective for collective in report.collectives if collective.stage == stage]
    groups = sorted(rows_of(listed, report), key=lambda group: -(group.total_wire or 0))
    whole = known_sum(group.total_wire for group in groups)
    estimated = any(collective.estimate is not None for collective in listed)
    rows: list[Row] = []
    for group in groups:
        if group.count > 1 and key_of(group.collectives[0]) in unfolded:
            rows += [_row(group, estimated, whole, number) for number in range(group.count)]
        else:
            rows.append(_row(group, estimated, whole))
    return Table(
        id="collectives",
        title="Collectives",
        key="3",
        columns=(
            Column("", 2, 6, align="right"),
            Column("kind", 14, 10),
            Column("axes", 5, 9),
            Column("per device", 12, 4),
            Column("total", 8, 8, align="right"),
            Column("share", 5, 8, align="right", where="documents"),
            Column("wire", 8, 2, align="right"),
            Column("runs", 4, 7, align="right"),
            *([Column("est.", 6, 8, align="right")] if estimated else []),
            Column("by", 11, 3),
            Column("pass", 4, 2),
            Column("from", 12, 7),
        ),
        rows=tuple(rows),
        heading=_heading(report, stage, groups),
        empty_text=_empty(report, stage),
        selection=lambda value: value[0] if isinstance(value, tuple) else None,
    )


def _row(group: CollectiveRow, estimated: bool, whole: int | None, member: int | None = None) -> Row:
    """All collectives that are alike, or one of them by its name."""
    these = group.collectives if member is None else group.collectives[member : member + 1]
    one = these[0]
    sign = "" if group.count == 1 else f"{group.count}×" if member is None else "┌" if member == 0 else FOLLOWS
    name = "" if member is None else f"{one.name}  "
    cells: tuple[Cell, ...] = (
        Piece(sign, "aside" if member else "strong"),
        group.kind,
        axes_cell(one.axes) if one.axes else group.axes,
        group.types,
        size_cell(total_wire(these), most=most_wire(these)),
        share_cell(total_wire(these), whole),
        size_cell(group.wire_bytes),
        Piece(group.executions, amount=one.executions),
        *([time_cell(total_seconds(these))] if estimated else []),
        Piece(group.origin, "warning" if group.origin in ("partitioner", "compiler") else ""),
        group.direction,
        f"{name}{group.source}",
    )
    return Row(cells, these)


def _heading(report: Report, stage: str | None, groups: Collection[CollectiveRow]) -> str:
    if stage is None:
        return "Collectives" if report.capture.stages else ""
    others = f"; not counted: {_uncounted(report)}" if report.uncounted else ""
    if not groups:
        return STAGES[stage].title
    count = sum(group.count for group in groups)
    if any(each.collectives[0].stage == stage for each in report.communication):
        sent = sent_text(report, is_complete=report.could_be_read(stage))
    else:
        total = sum(group.total_wire or 0 for group in groups)
        is_known = report.could_be_read(stage) and all(group.total_wire is not None for group in groups)
        sent = bounded_text(total, (each.kind for group in groups for each in group.collectives), is_complete=is_known)
    return f"{STAGES[stage].title}: {count:,}, {sent} sent per device per step{widened_text(report)}{others}"


def _empty(report: Report, stage: str | None) -> str:
    if stage is None:
        return "not known: there is neither StableHLO nor HLO here"
    if report.uncounted:
        return f"no collectives, but {_uncounted(report)}"
    if not report.could_be_read(stage):
        return "No collectives in what could be read."
    if stage in UNPARTITIONED and report.partitions > 1:
        return "none; those that the partitioner inserts are not here"
    return "No collectives."


def _uncounted(report: Report) -> str:
    descriptions = [_uncounted_one(each, report.script) for each in report.uncounted]
    shown = list(dict.fromkeys(descriptions))
    more = f", and {len(shown) - MAX_UNCOUNTED} more" if len(shown) > MAX_UNCOUNTED else ""
    return ", ".join(shown[:MAX_UNCOUNTED]) + more


def _uncounted_one(each: UncountedCommunication, script: str | None) -> str:
    place = f" ({text})" if (text := each.source.text(script)) else ""
    along = f" along {join_axes(each.axes)}" if each.axes else ""
    match each.does:
        case "copy":
            return f"kernel {each.name} copies {each.type or 'data'} to another device{along}{place}"
        case "signal":
            return f"kernel {each.name} signals another device{along}{place}"
        case "host":
            return f"{each.name} is a transfer to or from the host{f' of {each.type}' if each.type else ''}{place}"
    return f"custom call {each.name} may communicate{place}"


def causes(report: Report) -> Table:
    """For each row of inserted collectives, those that send most first, its cause and what would do without it."""
    listed = [c for c in report.collectives if c.stage == "hlo" and c.origin not in WRITTEN]
    alike = grouped((lines, row) for row in rows_of(listed, report) if (lines := _lines(row.collectives[0], report)))
    ordered = sorted(alike.items(), key=lambda item: -sum(row.total_wire or 0 for row in item[1]))
    return Table(
        id="causes",
        title="Why they are there",
        columns=titled("collectives", "because"),
        rows=tuple(Row((_what(rows), "\n".join(lines)), lines) for lines, rows in ordered),
        heading="Why they are there" if ordered else "",
        most=20,
        unit="cause",
    )


def _what(rows: Sequence[CollectiveRow]) -> str:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[f"{row.kind} {row.axes} {row.types}"] += row.count
    return ", ".join(f"{f'{count}× ' if count > 1 else ''}{kind}" for kind, count in counts.items())


def _lines(collective: Collective, report: Report) -> tuple[str, ...]:
    found = report.on_demand.causes(collective)
    lines = []
    for cause in found[:2]:
        lines += [cause_line(cause, report), remedy_line(cause, report)]
    if len(found) > 2:
        more = plural(len(found) - 2, "more operation")
        lines.append(f"and {more}: combined into one collective")
    return tuple(dict.fromkeys(filter(None, lines)))
