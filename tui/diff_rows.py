"""What differs as rows of a table, communication first."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from ..inspector.diff.diff import Change, Diff
from ..inspector.diff.wording import (
    SIGNS,
    amount_text,
    axes_words,
    border_name,
    border_text,
    bytes_delta,
    concern_text,
    differences,
    inside_text,
    opcode_words,
    transfer_text,
)
from ..inspector.render.collective_rows import SHORT_PASS
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

COLOURS = {"added": "$success", "removed": "$error", "changed": "$warning"}

MOST_OPCODES = 6


def rows_of(found: Diff) -> Iterator[Row]:
    """A row for each change; its key is the change itself for those of communication, a text for the others."""
    for number, change in enumerate(found.changes):
        yield Row(number, _cells(change))
    for concern in found.concerns:
        what, message = concern_text(concern)
        yield _told(what, message, COLOURS["removed" if concern.kind == "added" else "added"])
    for border in found.borders:
        yield _told(border_name(border), border_text(border))
    for inside in found.insides:
        yield _told(*inside_text(inside))
    for amount in found.sizes:
        yield _told(f"{amount.name} memory", amount_text(amount))
    for amount in found.costs:
        yield _told(f"{amount.name} time", amount_text(amount, seconds=True))
    if found.opcodes:
        yield _told("operations", opcode_words(found.opcodes, MOST_OPCODES))


def _cells(change: Change) -> tuple[Content, ...]:
    present = change.after or change.before
    assert present is not None
    first = change.before or present
    told = f": {'; '.join(differences(change))}" if change.kind == "changed" else ""
    types = [transfer_text(side) for side in (change.before, change.after) if side is not None]
    times = str(change.count) if change.count > 1 else ""
    return (
        Content.styled(f"{SIGNS[change.kind]}{times}", f"bold {COLOURS[change.kind]}"),
        data(f"{first.work.kind}{told}", COLOURS[change.kind]),
        data(axes_words(first.work)),
        data(" ⇒ ".join(dict.fromkeys(types))),
        Content(bytes_delta(0, change.wire_bytes)),
        Content(SHORT_PASS[present.place.direction]),
        data(present.where),
    )


def _told(what: str, text: str, colour: str = "") -> Row:
    blank = Content("")
    return Row(what, (blank, data(what, colour), blank, data(text), blank, blank, blank))
