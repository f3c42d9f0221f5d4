"""A diff as Markdown, for the comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from ..diff.diff import Change, Diff
from ..diff.wording import (
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
from .collective_rows import SHORT_PASS
from .markdown_text import plain, table

MOST = 60
"""Rows of each table."""

MOST_OPCODES = 12


def diff_to_markdown(found: Diff) -> str:
    """The headline, and tables under it; what is only for the curious is folded."""
    parts = [f"**{plain(headline(found))}**", f"{plain(found.before.title)} → {plain(found.after.title)}"]
    if found.changes:
        columns = ("", "collective", "axes", "per device", "wire", "pass", "from")
        parts.append(table(columns, [_row(change) for change in found.changes[:MOST]]))
        rest = len(found.changes) - MOST
        parts += [f"and {rest} more changes"] if rest > 0 else []
        parts += [f"The same on both sides: {found.same}."] if found.same else []
    if found.borders:
        rows = [(border_name(change), border_text(change)) for change in found.borders[:MOST]]
        parts.append(table(("", "sharding"), rows))
    if found.concerns:
        parts.append(table(("finding", ""), map(concern_text, found.concerns[:MOST])))
    if found.insides:
        shown = table(("inside the program", "sharding"), map(inside_text, found.insides[:MOST]))
        parts.append(f"<details><summary>Shardings inside the program</summary>\n\n{shown}\n\n</details>")
    rows = [(f"{amount.name} memory", amount_text(amount)) for amount in found.sizes]
    rows += [(f"{amount.name} time", amount_text(amount, seconds=True)) for amount in found.costs]
    rows += [("operations", opcode_words(found.opcodes, MOST_OPCODES))] if found.opcodes else []
    if rows:
        shown = table(("", ""), rows)
        parts.append(f"<details><summary>Memory, time, operations</summary>\n\n{shown}\n\n</details>")
    return "\n\n".join(parts) + "\n"


def _row(change: Change) -> Sequence[str]:
    present = change.after or change.before
    assert present is not None
    first = change.before or present
    types = [transfer_text(side) for side in (change.before, change.after) if side is not None]
    kind = f"{first.work.kind}: {'; '.join(differences(change))}" if change.kind == "changed" else first.work.kind
    return (
        f"{SIGNS[change.kind]}{change.count}",
        kind,
        axes_words(first.work),
        " ⇒ ".join(dict.fromkeys(types)),
        bytes_delta(0, change.wire_bytes),
        SHORT_PASS[present.place.direction],
        present.where,
    )
