"""The rows of the collectives' table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from textual.content import Content

from ..inspector.render.collective_rows import CollectiveRow as Transfer
from ..inspector.render.collective_rows import rows_of, total_seconds
from ..inspector.report import Collective, Report
from ..inspector.units import format_bytes, format_seconds
from .columns import Column
from .palette import axis_hues
from .pieces import axes_content, data
from .row_table import Row

COLUMNS = (
    Column("", 2, 5, "right"),
    Column("kind", 14, 10),
    Column("axes", 5, 9),
    Column("per device", 12, 6),
    Column("wire", 8, 8, "right"),
    Column("runs", 4, 7, "right"),
    Column("by", 4, 3),
    Column("pass", 4, 2),
    Column("from", 12, 4),
)

ESTIMATED = (*COLUMNS[:6], Column("est.", 6, 8, "right"), *COLUMNS[6:])
"""With the time that each row takes in one run, on a target that there is a model for."""

PROGRAMS = {"hlo": "compiled program", "stablehlo": "StableHLO, as written"}
"""The stages whose collectives are listed, the preferred one first."""

Key = tuple[str, int]


def key_of(collective: Collective) -> Key:
    """Stage and offset, which tell a collective from all others."""
    return collective.stage, collective.span.start


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows, and for every listed collective the row that it is in and the first of those that are alike."""

    rows: tuple[Row, ...]
    collectives: Mapping[Key, Collective]
    row_of: Mapping[Key, Key]
    first_of: Mapping[Key, Key]
    summary: Content
    columns: tuple[Column, ...] = COLUMNS


EMPTY = Listing((), {}, {}, {}, Content(""))


def programs(report: Report | None) -> list[str]:
    """The stages whose collectives can be listed."""
    if report is None:
        return []
    listed = {collective.stage for collective in report.collectives}
    return [stage for stage in PROGRAMS if stage in listed or report.capture.stage(stage) is not None]


def listing(report: Report, program: str, unfolded: Collection[Key], by_bytes: bool) -> Listing:
    """The collectives of one program. Those that differ in nothing are one row, unless they are unfolded."""
    listed = [collective for collective in report.collectives if collective.stage == program]
    transfers = rows_of(listed, report)
    if by_bytes:
        transfers = tuple(sorted(transfers, key=lambda transfer: -(transfer.total_wire or 0)))
    hues = axis_hues(report.meshes)
    estimated = any(collective.estimate is not None for collective in listed)
    rows: list[Row] = []
    row_of: dict[Key, Key] = {}
    first_of: dict[Key, Key] = {}
    for transfer in transfers:
        keys = [key_of(collective) for collective in transfer.collectives]
        first_of |= dict.fromkeys(keys, keys[0])
        if len(keys) > 1 and keys[0] in unfolded:
            rows += [Row(key, _cells(transfer, hues, estimated, number)) for number, key in enumerate(keys)]
            row_of |= {key: key for key in keys}
        else:
            rows.append(Row(keys[0], _cells(transfer, hues, estimated)))
            row_of |= dict.fromkeys(keys, keys[0])
    collectives = {key_of(collective): collective for collective in listed}
    columns = ESTIMATED if estimated else COLUMNS
    return Listing(tuple(rows), collectives, row_of, first_of, _summary(report, program, transfers), columns)


def _cells(
    transfer: Transfer, hues: Mapping[str, str], estimated: bool, member: int | None = None
) -> tuple[Content, ...]:
    one = transfer.collectives[member or 0]
    sign = "" if transfer.count == 1 else f"{transfer.count}×" if member is None else "┌" if member == 0 else "│"
    name = "" if member is None else f"{one.name}  "
    return (
        Content.styled(sign, "$aside" if member else "bold"),
        data(transfer.kind),
        axes_content(one.axes, hues) if one.axes else data(transfer.axes),
        data(transfer.types),
        Content(format_bytes(transfer.wire_bytes)),
        data(transfer.executions),
        *([Content(format_seconds(_seconds(transfer, member)))] if estimated else []),
        data(transfer.origin, "$warning" if transfer.origin in ("partitioner", "compiler") else ""),
        data(transfer.direction),
        data(f"{name}{transfer.source}"),
    )


def _seconds(transfer: Transfer, member: int | None) -> float | None:
    return transfer.total_seconds if member is None else total_seconds(transfer.collectives[member : member + 1])


def _summary(report: Report, program: str, transfers: Collection[Transfer]) -> Content:
    count = sum(transfer.count for transfer in transfers)
    others = [name for name in programs(report) if name != program]
    hint = Content.assemble("   ", ("w ", "$aside"), (f"show {PROGRAMS[others[0]]}", "$text-muted")) if others else ""
    if not count:
        if report.could_be_read(program):
            return Content.assemble((f"No collectives in the {PROGRAMS[program]}: nothing is communicated.", ""), hint)
        return Content.assemble((f"No collectives in what could be read of the {PROGRAMS[program]}.", ""), hint)
    total = sum(transfer.total_wire or 0 for transfer in transfers)
    is_known = report.could_be_read(program) and all(transfer.total_wire is not None for transfer in transfers)
    at_least = "" if is_known else "at least "
    words = f" in the {PROGRAMS[program]}; each device sends {at_least}"
    return Content.assemble((f"{count:,}", "bold"), words, (format_bytes(total), "bold"), _cost(report, program), hint)


def _cost(report: Report, program: str) -> Content:
    """The roofline of the whole function, beside what runs."""
    cost = report.cost
    if cost is None or program != "hlo":
        return Content("")
    parts = {"compute": cost.compute, "memory": cost.memory, "communication": cost.communication}
    lines = [
        Content.styled(f"{name} {format_seconds(s)}", "bold" if name == cost.bound else "") for name, s in parts.items()
    ]
    least = "at least " if cost.at_least else ""
    head = Content.assemble("   one run ", least, (format_seconds(cost.total), "bold"), " by a model: ")
    return Content.assemble(head, Content(" · ").join(lines))
