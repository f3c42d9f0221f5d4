"""Suggested shardings: as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..experiments.suggest import Suggestion, Suggestions
from ..report import Measured
from ..units import format_bytes, format_seconds
from .overview import subject_text
from .printable import printable

MAX_NAMES = 3


def suggestions_text(found: Suggestions) -> Iterator[str]:
    """Yield the lines: the cheapest first, today's program among them; `*` where no row is better in both."""
    yield printable(subject_text(found.report))
    listed = f"{found.priced:,} better by price or memory, {len(found.rows) - 1} compiled"
    yield f"{found.size:,} assignments of specs, {listed}"
    yield ""
    est = "est." if found.rows[0].experiment.after.seconds is not None else ""
    yield f"    {est:>8}  {'sent':>9}  {'memory':>9}  values"
    for row in found.rows:
        after = row.experiment.after
        seconds = "" if after.seconds is None else format_seconds(after.seconds)
        sent, memory = ("?" if size is None else format_bytes(size) for size in (after.bytes, after.memory))
        yield printable(
            f"  {'*' if row.is_best else ' '} {seconds:>8}  {sent:>9}  {memory:>9}  {_values(row):<8}  {_what(row)}"
        )


def _values(row: Suggestion) -> str:
    return row.experiment.values if row.arguments else ""


def _what(row: Suggestion) -> str:
    if not row.arguments:
        return "today"
    named = [f"{name}: {spec}" for name, spec in row.arguments[:MAX_NAMES]]
    more = len(row.arguments) - MAX_NAMES
    return ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])


def suggestions_to_json(found: Suggestions) -> dict[str, Any]:
    """Return the rows; today's has no arguments and no edits."""
    return {
        "schema": "shardscope.suggestions/1",
        "function": None if found.report.capture.subject is None else found.report.capture.subject.function,
        "assignments": found.size,
        "rows": [_row(row) for row in found.rows],
    }


def _row(row: Suggestion) -> dict[str, Any]:
    done = row.experiment
    return {
        "edits": [],
        "arguments": dict(row.arguments),
        "best": row.is_best,
        "collectives": dict(done.after.collectives),
        "experiment": {
            "before": _side(done.before),
            "after": _side(done.after),
            "values": done.values,
        },
    }


def _side(cost: Measured) -> dict[str, Any]:
    return {"bytes": cost.bytes, "seconds": cost.seconds, "memory": cost.memory, "axes": dict(cost.by_axes)}
