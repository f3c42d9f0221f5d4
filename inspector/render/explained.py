"""What the table of collectives says, as text."""

from __future__ import annotations

from collections.abc import Iterable

from ..collectives.table import CollectiveRule


def collective_text(rule: CollectiveRule) -> str:
    """One collective, in full."""
    lines = (
        f"{rule.primitive}: {rule.summary}",
        f"  called by    {', '.join(f'jax.lax.{function}' for function in rule.functions)}",
        f"  types        {_typing(rule)}",
        f"               {rule.example}",
        f"  lowers to    {_lowering(rule)}",
        f"  transposes   {_transpose(rule)}",
        f"  the devices' results {'are equal' if rule.equal else 'may differ'} along the axis",
        *((f"  {rule.note}",) if rule.note else ()),
    )
    return "".join(f"{line}\n" for line in lines)


def table_text(rules: Iterable[CollectiveRule]) -> str:
    """All of them, a line each."""
    rows = [("primitive", "called by", "types", "lowers to", "transposes")]
    for rule in rules:
        called = ", ".join(rule.functions)
        rows.append((rule.primitive, called, _typing(rule), rule.lowers_to or "nothing", rule.transpose or "–"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def _typing(rule: CollectiveRule) -> str:
    return f"{rule.takes or '()'} → {rule.gives}"


def _lowering(rule: CollectiveRule) -> str:
    return "nothing: no communication" if rule.lowers_to is None else f"{rule.lowers_to} (communication)"


def _transpose(rule: CollectiveRule) -> str:
    return "not linear: it has no transpose" if rule.transpose is None else f"to {rule.transpose}"
