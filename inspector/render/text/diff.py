"""A diff: the headline, and then what makes it, all that is the same left out."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from ...diff.diff import Change, Diff
from ...diff.headline import headline
from ...diff.surroundings import around as texts_around
from ...units import format_bytes, plural
from ..change_rows import MOST, ChangeRow, amount_rows, border_rows, change_rows, concern_rows, inside_rows
from .pieces import data, left_out, section, table

STYLES = {"added": "green", "removed": "red", "changed": "yellow", "regrouped": ""}


def print_diff(found: Diff, console: Console, around: int = 0) -> None:
    """Everything that differs, the headline first; of so many changes, the largest, the text around them at the end."""
    console.print(data(headline(found), "bold"))
    console.print(data(f"  before: {found.before.title}", "dim"))
    console.print(data(f"  after:  {found.after.title}", "dim"))
    parts = (
        _communication(found),
        _findings(found),
        _told("Arguments and outputs", border_rows(found)),
        _told("Inside the program", inside_rows(found)),
        _told("Memory, time, operations", amount_rows(found)),
    )
    for part in parts:
        if part is not None:
            console.print()
            console.print(part)
    for change in found.changes[:around]:
        console.print()
        console.print(_text(found, change))


def _text(found: Diff, change: Change) -> RenderableType:
    """Both sides' texts around a change: what is the same once, what is not with a sign."""
    lines: list[RenderableType] = []
    for facing in texts_around(found, change):
        if facing.same and facing.after is not None:
            lines.append(data(f"  {facing.after.line}", "dim"))
            continue
        lines += [data(f"- {facing.before.line}", "red")] if facing.before is not None else []
        lines += [data(f"+ {facing.after.line}", "green")] if facing.after is not None else []
    present = change.after or change.before
    where = "" if present is None else f"{present.work.kind} {present.name}"
    return section(f"Around {where}", lines or [Text("there is no text of it", "dim")])


def _communication(found: Diff) -> RenderableType | None:
    if not found.changes:
        return None
    shown = table("", "n", "collective", "axes", "per device", "wire", "pass", "from", right=("n", "wire"))
    rows = change_rows(found)
    for row in rows[:MOST]:
        shown.add_row(*_cells(row))
    sides = (found.before, found.after)
    totals = " → ".join(f"{plural(side.count, 'collective')}, {format_bytes(side.total_wire)}" for side in sides)
    same = [Text(f"the same on both sides: {found.same}", "dim")] if found.same else []
    title = f"Communication ({found.after.stage}): {totals} per device and run"
    return section(title, [shown, *left_out(len(rows) - MOST, "changes"), *same])


def _cells(row: ChangeRow) -> Sequence[Text]:
    style = STYLES[row.kind]
    return [
        Text(row.sign, style),
        Text(row.numbers),
        data(row.what, style),
        data(row.axes),
        data("\n".join(row.types)),
        Text(row.wire),
        Text(row.direction),
        data(row.place),
    ]


def _findings(found: Diff) -> RenderableType | None:
    if not found.concerns:
        return None
    shown = table("", "")
    shown.show_header = False
    for kind, what, message in concern_rows(found)[:MOST]:
        shown.add_row(data(what, STYLES["removed" if kind == "added" else "added"]), data(message))
    return section("Findings", [shown, *left_out(len(found.concerns) - MOST, "findings")])


def _told(title: str, rows: Sequence[tuple[str, str]]) -> RenderableType | None:
    if not rows:
        return None
    shown = table("", "")
    shown.show_header = False
    for row in rows[:MOST]:
        shown.add_row(*map(data, row))
    return section(title, [shown, *left_out(len(rows) - MOST, "")])
