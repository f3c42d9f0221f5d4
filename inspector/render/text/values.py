"""Arguments and outputs."""

from __future__ import annotations

from rich.console import RenderableType

from ...capture.model import Value
from ...report import Report
from .pieces import data, left_out, section, table

MOST = 12
"""Arguments, and outputs, that are listed."""


def values(report: Report) -> RenderableType | None:
    """Each by its path, with its type and the sharding that was asked for."""
    arguments, outputs = report.capture.arguments, report.capture.outputs
    if not arguments and not outputs:
        return None
    shown = table("", "type", "sharding")
    for value in (*arguments[:MOST], *outputs[:MOST]):
        shown.add_row(data(value.path), data(value.type), data(_sharding(value)))
    return section(
        "Arguments and outputs",
        [shown, *left_out(len(arguments) - MOST, "argument"), *left_out(len(outputs) - MOST, "output")],
    )


def _sharding(value: Value) -> str:
    return f"{value.spec or 'not asked for'}{', donated' if value.donated else ''}"
