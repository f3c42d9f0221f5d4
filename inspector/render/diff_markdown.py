"""A diff as Markdown, for the comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from ..diff.diff import Diff
from ..diff.headline import headline
from .change_rows import MOST, ChangeRow, amount_rows, border_rows, change_rows, concern_rows, inside_rows
from .markdown_text import plain, table


def diff_to_markdown(found: Diff) -> str:
    """The headline, and tables under it; what is only for the curious is folded."""
    parts = [f"**{plain(headline(found))}**", f"{plain(found.before.title)} → {plain(found.after.title)}"]
    if found.changes:
        columns = ("", "collective", "axes", "per device", "wire", "pass", "from")
        rows = change_rows(found)
        parts.append(table(columns, list(map(_row, rows[:MOST]))))
        parts += _left_out(rows, "changes")
        parts += [f"The same on both sides: {found.same}."] if found.same else []
    if found.borders:
        parts.append(table(("", "sharding"), border_rows(found)[:MOST]))
        parts += _left_out(found.borders, "shardings")
    if found.concerns:
        parts.append(table(("finding", ""), [row[1:] for row in concern_rows(found)[:MOST]]))
        parts += _left_out(found.concerns, "findings")
    if found.insides:
        shown = table(("inside the program", "sharding"), inside_rows(found)[:MOST])
        parts.append(_folded("Shardings inside the program", [shown, *_left_out(found.insides, "shardings")]))
    if rest := amount_rows(found):
        parts.append(_folded("Memory, time, operations", [table(("", ""), rest)]))
    return "\n\n".join(parts) + "\n"


def _row(row: ChangeRow) -> Sequence[str]:
    return (
        f"{row.sign} {row.numbers}".rstrip(),
        row.what,
        row.axes,
        " ⇒ ".join(row.types),
        row.wire,
        row.direction,
        row.place,
    )


def _left_out(rows: Sequence[object], word: str) -> list[str]:
    return [f"and {len(rows) - MOST} more {word}"] if len(rows) > MOST else []


def _folded(title: str, parts: Sequence[str]) -> str:
    inside = "\n\n".join(parts)
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"
