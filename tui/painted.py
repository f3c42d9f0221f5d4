"""Tables of reports as rows of the screen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from textual.content import Content

from ..inspector.render.table import Cell, Column, Piece, Role, Table, pieces
from ..inspector.render.tables.findings import ROLES
from ..inspector.report import Severity
from .palette import axis_hue
from .pieces import data
from .row_table import Row

STYLES: Mapping[Role, str] = {
    "strong": "bold",
    "aside": "$aside",
    "good": "$success",
    "warning": "$warning",
    "error": "bold $error",
    "added": "$success",
    "removed": "$error",
    "changed": "$warning",
}


def severity_style(severity: Severity) -> str:
    """The style of a finding's severity."""
    return STYLES[ROLES[severity]]


def columns_of(table: Table) -> tuple[Column, ...]:
    """Those that are on the screen."""
    return tuple(column for column in table.columns if column.where != "documents")


def rows_of(table: Table, hues: Mapping[str, str], keys: Sequence[Hashable] | None = None) -> list[Row]:
    """All rows, each by its key; by its number where none are given."""
    shown = [number for number, column in enumerate(table.columns) if column.where != "documents"]
    return [
        Row(key, tuple(content(row.cells[column], hues) for column in shown))
        for key, row in zip(range(len(table.rows)) if keys is None else keys, table.rows, strict=True)
    ]


def content(cell: Cell, hues: Mapping[str, str]) -> Content:
    """A cell in colours, on one line."""
    return Content("").join(_painted(piece, hues) for piece in pieces(cell))


def _painted(piece: Piece, hues: Mapping[str, str]) -> Content:
    style = f"bold {axis_hue(piece.text, hues)}" if piece.role == "axis" else STYLES.get(piece.role, "")
    return data(piece.text.replace("\n", " "), style)
