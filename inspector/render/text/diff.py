"""A diff: the headline, and then what makes it, all that is the same left out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from ...diff.diff import Change, Diff
from ...diff.surroundings import around, line
from ...diff.wording import (
    SIGNS,
    amount_text,
    axes_words,
    border_name,
    border_text,
    bytes_delta,
    concern_text,
    differences,
    headline,
    inside_text,
    opcode_words,
    transfer_text,
)
from ...units import format_bytes, plural
from ..collective_rows import SHORT_PASS
from .pieces import data, left_out, section, table

MOST = 60
"""Rows of each table."""

MOST_OPCODES = 12

STYLES = {"added": "green", "removed": "red", "changed": "yellow"}


def print_diff(found: Diff, console: Console, texts: int = 0) -> None:
    """Everything that differs, the headline first; of so many changes, the largest, the text around them at the end."""
    console.print(data(headline(found), "bold"))
    console.print(data(f"  before: {found.before.title}", "dim"))
    console.print(data(f"  after:  {found.after.title}", "dim"))
    for part in (_communication(found), _findings(found), _borders(found), _insides(found), _amounts(found)):
        if part is not None:
            console.print()
            console.print(part)
    for change in found.changes[:texts]:
        console.print()
        console.print(_text(found, change))


def _text(found: Diff, change: Change) -> RenderableType:
    """Both sides' texts around a change: what is the same once, what is not with a sign."""
    lines: list[RenderableType] = []
    for facing in around(found, change):
        if facing.same and facing.after is not None:
            lines.append(data(f"  {line(facing.after)}", "dim"))
            continue
        lines += [data(f"- {line(facing.before)}", "red")] if facing.before is not None else []
        lines += [data(f"+ {line(facing.after)}", "green")] if facing.after is not None else []
    present = change.after or change.before
    where = "" if present is None else f"{present.work.kind} {present.name}"
    return section(f"Around {where}", lines or [Text("there is no text of it", "dim")])


def _communication(found: Diff) -> RenderableType | None:
    if not found.changes:
        return None
    shown = table("", "n", "collective", "axes", "per device", "wire", "pass", "from", right=("n", "wire"))
    for change in found.changes[:MOST]:
        shown.add_row(*_cells(change))
    sides = (found.before, found.after)
    totals = " → ".join(f"{plural(side.count, 'collective')}, {format_bytes(side.total_wire)}" for side in sides)
    same = [Text(f"the same on both sides: {found.same}", "dim")] if found.same else []
    title = f"Communication ({found.after.stage}): {totals} per device and run"
    return section(title, [shown, *left_out(len(found.changes) - MOST, "changes"), *same])


def _cells(change: Change) -> Sequence[Text]:
    present = change.after or change.before
    assert present is not None
    style = STYLES[change.kind]
    kind: str = (change.before or present).work.kind
    types = [transfer_text(side) for side in (change.before, change.after) if side is not None]
    if change.kind == "changed":
        kind = f"{kind}: {'; '.join(differences(change))}"
    return [
        Text(SIGNS[change.kind], style),
        Text(f"{change.count}×" if change.count > 1 else ""),
        data(kind, style),
        data(axes_words((change.before or present).work)),
        data("\n".join(dict.fromkeys(types))),
        Text(bytes_delta(0, change.wire_bytes)),
        Text(SHORT_PASS[present.place.direction]),
        data(present.where),
    ]


def _borders(found: Diff) -> RenderableType | None:
    if not found.borders:
        return None
    shown = table("", "sharding")
    for change in found.borders[:MOST]:
        shown.add_row(data(border_name(change)), data(border_text(change)))
    return section("Arguments and outputs", [shown, *left_out(len(found.borders) - MOST, "")])


def _insides(found: Diff) -> RenderableType | None:
    if not found.insides:
        return None
    shown = table("", "sharding")
    for change in found.insides[:MOST]:
        shown.add_row(*map(data, inside_text(change)))
    return section("Inside the program", [shown, *left_out(len(found.insides) - MOST, "")])


def _findings(found: Diff) -> RenderableType | None:
    if not found.concerns:
        return None
    shown = table("", "")
    shown.show_header = False
    for change in found.concerns[:MOST]:
        what, message = concern_text(change)
        shown.add_row(data(what, STYLES["removed" if change.kind == "added" else "added"]), data(message))
    return section("Findings", [shown, *left_out(len(found.concerns) - MOST, "findings")])


def _amounts(found: Diff) -> RenderableType | None:
    shown = table("", "")
    shown.show_header = False
    for amount in found.sizes:
        shown.add_row(data(f"{amount.name} memory"), data(amount_text(amount)))
    for amount in found.costs:
        shown.add_row(data(f"{amount.name} time"), data(amount_text(amount, seconds=True)))
    if found.opcodes:
        shown.add_row("operations", data(opcode_words(found.opcodes, MOST_OPCODES)))
    return section("Memory, time, operations", [shown]) if shown.row_count else None
