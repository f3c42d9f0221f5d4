"""What differs as rows of one table, communication first."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from ..inspector.diff.diff import Diff
from ..inspector.render.table import Column, Table
from ..inspector.render.tables.diff import screen_tables
from .painted import columns_of, content
from .row_table import Row

WHAT, TEXT = 1, 3
"""The columns that hold both cells of what is no communication."""


def diff_columns(found: Diff) -> tuple[Column, ...]:
    """Those of communication."""
    return columns_of(screen_tables(found)[0])


def diff_rows(found: Diff) -> Iterator[Row]:
    """The key of a change is its number, and that of anything else its text."""
    communication, *others = screen_tables(found)
    numbers = {id(change): number for number, change in enumerate(found.changes)}
    for row in communication.rows:
        first = next(iter(row.value)) if isinstance(row.value, tuple) else None
        yield Row(numbers[id(first)], tuple(content(cell, {}) for cell in row.cells))
    for table in others:
        yield from _two_cells(table, len(communication.columns))


def _two_cells(table: Table, columns: int) -> Iterator[Row]:
    for row in table.rows:
        what, text = (content(cell, {}) for cell in row.cells)
        cells = {WHAT: what, TEXT: text}
        yield Row(what.plain, tuple(cells.get(column, Content("")) for column in range(columns)))
