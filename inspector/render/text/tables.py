"""A table of any kind in a terminal, and what the other sections of a text report are made of."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ...units import plural
from ..printable import printable
from ..table import Cell, Column, Role, Table, pieces


def section(title: str, lines: Sequence[RenderableType]) -> RenderableType:
    """A title, and what stands under it."""
    return Group(data(title, "bold"), *(Padding(line, (0, 0, 0, 2)) for line in lines))


def data(text: str, style: str = "") -> Text:
    """Text from outside: no markup and no escapes are taken from it."""
    return Text(printable(text), style)


def left_out(count: int, word: str, rest: str = "") -> Sequence[RenderableType]:
    """A line that tells how many are not shown, `and 2 more values`; none if all are. `rest` follows the word."""
    number = plural(count, f"more {word}") if word else f"{count:,} more"
    return [Text(f"and {number}{rest}", "dim")] if count > 0 else []


STYLES: dict[Role, str] = {
    "strong": "bold",
    "aside": "dim",
    "good": "green",
    "warning": "yellow",
    "error": "bold red",
    "added": "green",
    "removed": "red",
    "changed": "yellow",
}


def table_section(table: Table) -> RenderableType | None:
    """The heading and what is under it; None for a table that has neither rows nor a heading."""
    columns, rows = table.for_document()
    if not rows and not table.heading:
        return None
    lines: list[RenderableType] = [text_of(cell) for cell in table.above]
    if rows:
        shown = rows[: table.most]
        lines += [_grid(columns, shown), *left_out(len(rows) - len(shown), table.unit)]
    elif table.empty_text:
        lines.append(data(table.empty_text))
    return section(table.heading, [*lines, *map(text_of, table.notes())])


def _grid(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> RichTable:
    """A table without lines, and without titles where no column has one."""
    titles = [column.title for column in columns]
    grid = RichTable(*titles, box=None, pad_edge=False, header_style="dim", show_header=any(titles))
    for made, column in zip(grid.columns, columns, strict=True):
        made.overflow, made.justify = "fold", column.align
    for row in rows:
        grid.add_row(*map(text_of, row))
    return grid


def text_of(cell: Cell) -> Text:
    """A cell in the terminal's colours."""
    return Text.assemble(*((printable(piece.text), STYLES.get(piece.role, "")) for piece in pieces(cell)))
