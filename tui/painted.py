"""Tables of reports, and texts from outside, as what the screen shows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import field
from textual.content import Content

from ..inspector.render.printable import printable
from ..inspector.render.table import Cell, Column, Piece, Role, Table, amount_in, pieces, plain_text
from ..inspector.render.tables.findings import ROLES
from ..inspector.report import Severity
from ..parsers.record import Record
from ..parsers.sharding_syntax.mesh import AxisRef
from .palette import axis_hue

LABEL = 10
"""Columns of the label of a fact."""


def data(text: str, style: str = "") -> Content:
    """Text from outside: no markup and no escapes are taken from it."""
    return Content.styled(printable(text), style)


def axes_content(axes: Sequence[AxisRef] | Sequence[str], hues: Mapping[str, str]) -> Content:
    """Axes, each in its colour."""
    refs = (AxisRef(axis) if isinstance(axis, str) else axis for axis in axes)
    return Content(", ").join(data(str(axis), f"bold {axis_hue(axis.name, hues)}") for axis in refs)


def title(text: str) -> Content:
    """The heading of a part of a pane."""
    return Content.styled(text, "bold $text-muted")


def fact(label: str, value: Content | str, width: int) -> Iterable[Content]:
    """A label, and beside it a value of as many lines as it needs; nothing for an empty value."""
    content = data(value) if isinstance(value, str) else value
    if not content.plain:
        return
    indent = max(LABEL, len(label) + 1)
    for number, line in enumerate(folded(content, width - indent)):
        yield Content.assemble((f"{'' if number else label:<{indent}}", "$aside"), line)


def folded(content: Content, width: int) -> list[Content]:
    """Lines no wider than that; broken between words if there are any."""
    return [line for part in content.split("\n") or [content] for line in part.wrap(max(width, 8))]


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
    """Return the columns of the screen."""
    return tuple(column for column in table.columns if column.where != "documents")


class Row(Record, frozen=True):
    """One row: `key` says what it is about. It is painted when it is drawn: of a long table few rows ever are.

    The cells of one that `spans` are a text across all columns.
    """

    key: Hashable
    given: tuple[Cell, ...]
    hues: Mapping[str, str] = field(default_factory=dict)
    spans: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(_text, self.given))

    @property
    def cells(self) -> tuple[Content, ...]:
        return tuple(content(cell, self.hues) for cell in self.given)

    def order(self, column: int) -> tuple[int, float, str]:
        """Its place among others: the largest number first, then texts, then empty cells."""
        amount, text = amount_in(self.given[column]), _text(self.given[column]).strip().lower()
        return (0, -amount, text) if amount is not None else (1 if text else 2, 0.0, text)


def rows_of(table: Table, hues: Mapping[str, str], keys: Sequence[Hashable] | None = None) -> list[Row]:
    """All rows, each by its key; by its number where none are given."""
    shown = [number for number, column in enumerate(table.columns) if column.where != "documents"]
    return [
        Row(key, tuple(row.cells[column] for column in shown), hues)
        for key, row in zip(range(len(table.rows)) if keys is None else keys, table.rows, strict=True)
    ]


def content(cell: Cell, hues: Mapping[str, str]) -> Content:
    """A cell in colours, on one line."""
    return Content("").join(_painted(piece, hues) for piece in pieces(cell))


def _text(cell: Cell) -> str:
    return printable(plain_text(cell).replace("\n", " "))


def _painted(piece: Piece, hues: Mapping[str, str]) -> Content:
    style = f"bold {axis_hue(piece.axis, hues)}" if piece.role == "axis" else STYLES.get(piece.role, "")
    return data(piece.text.replace("\n", " "), style)
