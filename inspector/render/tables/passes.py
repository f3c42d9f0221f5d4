"""The table of the compiler's passes that change communication."""

from __future__ import annotations

from collections.abc import Sequence

from ...report import Report
from ...report.changes import PassChange
from ..table import Column, Detail, Piece, Row, Table

MAX_OPCODES = 4
"""Kinds of operations whose numbers are shown of a pass that changes no communication."""

EMPTY = "No pass that changes communication was recorded; --passes records them."


def passes(report: Report) -> Table:
    """A row for each pass, in order."""
    changes = report.on_demand.pass_changes()
    return Table(
        id="passes",
        title="Passes",
        key="P",
        columns=(
            Column("pass", 22, 9),
            Column("pipeline", 16, 3),
            Column("collectives", 10, 6, align="right"),
            Column("changes", 30, 10),
        ),
        rows=tuple(_row(change) for change in changes),
        heading=_heading(changes),
        empty_text=EMPTY,
        unit="pass",
        details=_details,
    )


def _heading(changes: Sequence[PassChange]) -> str:
    if not changes:
        return ""
    communicating = sum(bool(change.diff.changes) for change in changes)
    if communicating == len(changes):
        return "Passes of XLA that change communication"
    return f"Passes of XLA that change the program: {len(changes)}, communication: {communicating}"


def _row(change: PassChange) -> Row:
    from ..diff_words import opcode_words
    from ..headline import headline

    before, after = change.diff.before.count, change.diff.after.count
    counts = f"{before} → {after}" if before != after else str(after)
    if change.diff.changes:
        return Row((change.name, change.pipeline, counts, headline(change.diff)), change)
    operations = opcode_words(change.diff.opcodes, MAX_OPCODES) or "as many operations of each kind"
    return Row((change.name, change.pipeline, counts, Piece(operations, "aside")), change)


def _details(value: object) -> Sequence[Detail]:
    from ..change_rows import change_rows

    if not isinstance(value, PassChange):
        return ()
    lines = [
        " ".join(filter(None, (row.sign.replace("−", "-"), row.numbers, row.what, row.axes, *row.types, row.place)))
        for row in change_rows(value.diff)
    ]
    return [Detail("what it changes", "\n".join(lines), is_code=True)]
