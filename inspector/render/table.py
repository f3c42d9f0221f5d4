"""A table as a value, which text, Markdown, HTML and the screen paint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ..units import format_bytes, format_seconds

Role = Literal["", "strong", "aside", "good", "warning", "error", "added", "removed", "changed", "axis"]
"""The role of a piece of text, for which a painter has a colour; an axis has the colour of its mesh axis."""


class Piece(Record, frozen=True):
    """A piece of a cell's text, as it came from outside: painters make it safe.

    `axis` is the name of the mesh axis that it stands for, `amount` the number, by which rows are sorted.
    """

    text: str
    role: Role = ""
    axis: str = ""
    amount: float | None = None


Cell = str | Piece | tuple[Piece, ...]


class Column(Record, frozen=True):
    """`least` is the width to which it may be cut. Where not even that fits, what is least important is left out.

    Some columns are only in documents, which have the width for them, or say by text what the screen says otherwise.
    """

    title: str
    least: int = 4
    importance: int = 0
    align: Literal["left", "right"] = "left"
    where: Literal["everywhere", "documents", "screen"] = "everywhere"


def titled(*titles: str, right: Collection[str] = ()) -> tuple[Column, ...]:
    """The columns of a table that only documents have; those of numbers are aligned to the `right`."""
    return tuple(Column(title, align="right" if title in right else "left") for title in titles)


class Detail(Record, frozen=True):
    """More about what a row stands for: a labelled text, or lines of a diff or of a program."""

    label: str
    text: str
    is_code: bool = False


class Row(Record, frozen=True):
    """The cells, and the `value` of the report that they are about. Only the screen lists `minor` rows."""

    cells: tuple[Cell, ...]
    value: object = None
    minor: bool = False


def _itself(value: object) -> object:
    return value


def _nothing(value: object) -> Sequence[Detail]:
    return ()


class Table(Record, frozen=True):
    """`title` is what a tab is called, `key` what chooses it on the screen; without one there is no such tab, with
    a letter only while it has rows.

    A document prints the `heading`, the lines `above`, at most `most` rows (each a `unit`), and what `notes` returns;
    nothing where there are neither rows nor a heading. `empty_text` says why there are no rows. `selection` is what the
    screen selects for a row's value, `details` is what else is known of it. An `early` table needs no analysis.
    `total` is what a tab counts, where that is not the number of rows. With `in_full` a document prints under each row
    its details instead of drawing a grid. `notes_in_full` are the notes without an end to their number. On the screen,
    the cursor begins on the row `first`.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    key: str = ""
    heading: str = ""
    empty_text: str = ""
    above: tuple[Cell, ...] = ()
    notes: Callable[[], Iterable[Cell]] = tuple
    notes_in_full: Callable[[], Iterable[Cell]] | None = None
    most: int | None = None
    unit: str = "row"
    total: int | None = None
    selection: Callable[[object], object] = _itself
    details: Callable[[object], Sequence[Detail]] = _nothing
    early: bool = False
    in_full: bool = False
    first: int = 0

    def for_document(self) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
        """The columns and the rows that a document shows, however many."""
        shown = [number for number, column in enumerate(self.columns) if column.where != "screen"]
        rows = (replace(row, cells=tuple(row.cells[n] for n in shown)) for row in self.rows if not row.minor)
        return tuple(self.columns[number] for number in shown), tuple(rows)


def pieces(cell: Cell) -> tuple[Piece, ...]:
    """The pieces of any cell."""
    return (Piece(cell),) if isinstance(cell, str) else (cell,) if isinstance(cell, Piece) else cell


def plain_text(cell: Cell) -> str:
    """A cell's text."""
    return "".join(piece.text for piece in pieces(cell))


def amount_in(cell: Cell) -> float | None:
    """The number that a cell stands for."""
    return next((piece.amount for piece in pieces(cell) if piece.amount is not None), None)


def size_cell(count: int | None, role: Role = "", most: int | None = None) -> Piece:
    """A number of bytes, or their upper bound where they are not known."""
    if count is None and most is not None:
        return Piece(f"≤ {format_bytes(most)}", role, amount=most)
    return Piece(format_bytes(count), role, amount=count)


def time_cell(seconds: float | None, role: Role = "") -> Piece:
    """A time in seconds."""
    return Piece(format_seconds(seconds), role, amount=seconds)


def count_cell(count: int, role: Role = "") -> Piece:
    """A number of things."""
    return Piece(f"{count:,}", role, amount=count)


def share_cell(part: float | None, whole: float | None) -> Piece:
    """`42%`, `<1%`; empty where either is not known."""
    if part is None or not whole:
        return Piece("")
    share = part / whole
    return Piece("<1%" if 0 < share < 0.005 else f"{share:.0%}", amount=share)


def axes_cell(axes: Iterable[AxisRef | str]) -> tuple[Piece, ...]:
    """Names of mesh axes, separated by commas."""
    return tuple(piece for axis in axes for piece in (Piece(", "), axis_piece(axis)))[1:]


def axis_piece(axis: AxisRef | str) -> Piece:
    """A mesh axis, or a part of one."""
    return Piece(str(axis), "axis", axis if isinstance(axis, str) else axis.name)
