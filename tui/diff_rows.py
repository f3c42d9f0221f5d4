"""What differs as rows of a table, communication first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from textual.content import Content

from ..inspector.diff.diff import Diff
from ..inspector.render.change_rows import ChangeRow, amount_rows, border_rows, change_row, concern_rows, inside_rows
from .columns import Column
from .pieces import data
from .row_table import Row

COLUMNS = (
    Column("", 6, 9),
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
    """A row for each change, one for those that read alike; its key is the number of the first, a text for the rest."""
    alike: dict[ChangeRow, list[int]] = {}
    for number, change in enumerate(found.changes):
        alike.setdefault(replace(change_row((change,)), changes=()), []).append(number)
    for numbers in alike.values():
        yield Row(numbers[0], _cells(change_row([found.changes[number] for number in numbers])))
    for kind, what, message in concern_rows(found):
        yield _told(what, message, COLOURS["removed" if kind == "added" else "added"])
    for what, text in (*border_rows(found), *inside_rows(found), *amount_rows(found, MOST_OPCODES)):
        yield _told(what, text)


def _cells(row: ChangeRow) -> tuple[Content, ...]:
    return (
        Content.styled(f"{row.sign}{row.numbers.removesuffix('×')}", f"bold {COLOURS[row.kind]}"),
        data(row.what, COLOURS[row.kind]),
        data(row.axes),
        data(" ⇒ ".join(row.types)),
        Content(row.wire),
        Content(row.direction),
        data(row.place),
    )


def _told(what: str, text: str, colour: str = "") -> Row:
    blank = Content("")
    return Row(what, (blank, data(what, colour), blank, data(text), blank, blank, blank))
