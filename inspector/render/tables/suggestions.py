"""The table of suggested shardings."""

from __future__ import annotations

from collections.abc import Sequence

from ...report import Fix
from ...report.edits import diff_of
from ...report.suggestions import Suggestion, Suggestions
from ...units import format_bytes
from ..table import Column, Detail, Piece, Row, Table, size_cell, time_cell

MAX_TITLES = 3
"""Requests of a row that a document lists."""

MAX_ROWS = 12

BEST = "*"
"""The mark of rows of which no other one is both faster and smaller."""

NO_EDITS = ("none is known that makes these requests",)


def suggestions(found: Suggestions) -> Table:
    """The rows, today's among them: the cheapest first."""
    now = next(row for row in found.rows if row.requests is None).experiment.after
    has_time = now.seconds is not None
    return Table(
        id="suggestions",
        title="Suggestions",
        columns=(
            Column(""),
            Column("est." if has_time else "", 7, 5, align="right"),
            Column("sent", 7, 6, align="right"),
            Column("memory", 7, 4, align="right"),
            Column("values", 5, 2),
            Column("requests", 20, 7),
        ),
        rows=tuple(_row(row) for row in found.rows),
        heading=f"{found.size:,} assignments of specs",
        above=(
            f"{found.priced:,} better by price or memory, {len(found.rows) - 1} compiled",
            f"today {format_bytes(now.bytes)} sent, {format_bytes(now.memory)} of memory",
        ),
        most=MAX_ROWS,
        details=lambda value: suggestion_details(found, value) if isinstance(value, Suggestion) else (),
    )


def _row(row: Suggestion) -> Row:
    after = row.experiment.after
    titles = ("today",) if row.requests is None else row.requests
    more = len(titles) - MAX_TITLES
    requests = ", ".join([*titles[:MAX_TITLES], *([f"and {more} more"] if more > 0 else [])])
    return Row(
        (
            BEST if row.is_best else "",
            "" if after.seconds is None else time_cell(after.seconds),
            size_cell(after.bytes),
            size_cell(after.memory),
            "" if row.requests is None else row.experiment.values,
            Piece(requests, "strong" if row.requests is None else ""),
        ),
        row,
    )


def suggestion_details(found: Suggestions, row: Suggestion) -> Sequence[Detail]:
    """Requests, the collectives that are left, and the edits that make the requests."""
    if row.requests is None:
        return ()
    sent = ", ".join(f"{kind} × {count:,}" for kind, count in row.experiment.after.collectives)
    lines = diff_of(found.report.program, Fix("", row.edits)) if row.edits else NO_EDITS
    return (
        Detail("requests", "\n".join(row.requests)),
        Detail("sends", sent or "nothing"),
        Detail("edits", "\n".join(lines), is_code=bool(row.edits)),
    )
