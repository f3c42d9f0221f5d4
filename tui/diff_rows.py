"""What differs as rows of a table, communication first."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from ..inspector.diff.diff import Change, Diff
from ..inspector.render.change_rows import amount_rows, border_rows, change_row, concern_rows, inside_rows
from .columns import Column
from .pieces import data
from .row_table import Row

COLUMNS = (
    Column("", 3, 9),
    Column("what", 16, 8),
    Column("axes", 4, 6),
    Column("per device", 24, 4),
    Column("wire", 6, 7, "right"),
    Column("pass", 4, 3),
    Column("from", 12, 5),
)

COLOURS = {"added": "$success", "removed": "$error", "changed": "$warning", "regrouped": "$aside"}

MOST_OPCODES = 6


def rows_of(found: Diff) -> Iterator[Row]:
    """A row for each change; its key is the change itself for those of communication, a text for the others."""
    for number, change in enumerate(found.changes):
        yield Row(number, _cells(change))
    for kind, what, message in concern_rows(found):
        yield _told(what, message, COLOURS["removed" if kind == "added" else "added"])
    for what, text in (*border_rows(found), *inside_rows(found), *amount_rows(found, MOST_OPCODES)):
        yield _told(what, text)


def _cells(change: Change) -> tuple[Content, ...]:
    row = change_row((change,))
    return (
        Content.styled(f"{row.sign}{row.numbers.removesuffix('×')}", f"bold {COLOURS[change.kind]}"),
        data(row.what, COLOURS[change.kind]),
        data(row.axes),
        data(" ⇒ ".join(row.types)),
        Content(row.wire),
        Content(row.direction),
        data(row.place),
    )


def _told(what: str, text: str, colour: str = "") -> Row:
    blank = Content("")
    return Row(what, (blank, data(what, colour), blank, data(text), blank, blank, blank))
