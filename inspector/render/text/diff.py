"""A diff: the headline, and then what makes it, all that is the same left out."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text

from ...diff.diff import Change, Diff
from ...diff.headline import headline
from ...diff.surroundings import around as texts_around
from ..tables.diff import diff_tables
from .pieces import data, section
from .tables import table_section


def print_diff(found: Diff, console: Console, around: int = 0) -> None:
    """Everything that differs, the headline first; of so many changes, the largest, the text around them at the end."""
    console.print(data(headline(found), "bold"))
    console.print(data(f"  before: {found.before.title}", "dim"))
    console.print(data(f"  after:  {found.after.title}", "dim"))
    for table in diff_tables(found):
        console.print()
        console.print(table_section(table))
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
