"""The tables of a diff: communication, findings, shardings, and what is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...diff.diff import Diff
from ...units import format_bytes, plural
from ..change_rows import (
    MOST,
    ChangeRow,
    amount_rows,
    border_rows,
    change_rows,
    changes_one_by_one,
    concern_rows,
    inside_rows,
)
from ..table import Cell, Column, Piece, Role, Row, Table

ROLES: dict[str, Role] = {"added": "added", "removed": "removed", "changed": "changed", "regrouped": "aside"}


def diff_tables(found: Diff) -> Sequence[Table]:
    """All that have rows."""
    tables = (
        communication(found, change_rows(found)),
        _concerns(found),
        _facts("borders", "Arguments and outputs", border_rows(found), "sharding"),
        _facts("insides", "Inside the program", inside_rows(found), "sharding"),
        _facts("amounts", "Memory, time, operations", amount_rows(found), "row"),
    )
    return [table for table in tables if table.rows]


def screen_tables(found: Diff) -> Sequence[Table]:
    """The same, each change that reads otherwise in a row of its own: a row leads to its place in both texts."""
    _, *others = diff_tables(found) if found.changes else (None, *diff_tables(found))
    return [communication(found, changes_one_by_one(found)), *others]


def communication(found: Diff, rows: Iterable[ChangeRow]) -> Table:
    """The collectives that changed; the value of a row are its changes."""
    sides = (found.before, found.after)
    totals = " → ".join(f"{plural(side.count, 'collective')}, {format_bytes(side.total_wire)}" for side in sides)
    same = [Piece(f"the same on both sides: {found.same}", "aside")] if found.same else []
    return Table(
        id="communication",
        title="Communication",
        columns=(
            Column("", 6, 9),
            Column("collective", 16, 8),
            Column("axes", 4, 6),
            Column("per device", 24, 4),
            Column("wire", 6, 7, "right"),
            Column("pass", 4, 3),
            Column("from", 12, 5),
        ),
        rows=tuple(Row(_cells(row), row.changes) for row in rows),
        heading=f"Communication ({found.after.stage}): {totals} per device and run",
        notes=lambda: same,
        most=MOST,
        unit="change",
    )


def _cells(row: ChangeRow) -> tuple[Cell, ...]:
    role = ROLES[row.kind]
    return (
        Piece(f"{row.sign} {row.numbers}".rstrip(), role),
        Piece(row.what, role),
        row.axes,
        "\n⇒ ".join(row.types),
        row.wire,
        row.direction,
        row.place,
    )


def _concerns(found: Diff) -> Table:
    # A finding that came is bad news.
    rows = [
        Row((Piece(what, "removed" if kind == "added" else "added"), message), kind)
        for kind, what, message in concern_rows(found)
    ]
    return Table("concerns", "Findings", (Column(""), Column("")), tuple(rows), heading="Findings", most=MOST)


def _facts(id: str, title: str, rows: Sequence[tuple[str, str]], unit: str) -> Table:
    columns, cells = (Column(""), Column("")), tuple(map(Row, rows))
    return Table(id, title, columns, cells, heading=title, most=MOST, unit=unit)
