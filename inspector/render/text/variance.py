"""Which values vary over which mesh axes, where the axes entered and where they left."""

from __future__ import annotations

from rich.console import RenderableType

from ...report import Report, VariableVariance
from ...units import plural
from .pieces import data, left_out, section, table

MOST = 12
"""Values that are listed."""


def variance(report: Report) -> RenderableType | None:
    """The values at which something happens: an axis enters or leaves, or a type hides one."""
    happening = [value for value in report.variance if _happens(value)]
    if not happening:
        return None
    shown = table("", "type", "varies over", "left", "entered", "from")
    for value in happening[:MOST]:
        shown.add_row(*map(data, _cells(value, report.script)))
    inferred = any(value.inferred for value in report.variance)
    note = " (inferred, as the check is off)" if inferred else ""
    title = f"Variance{note}: {plural(len(report.variance), 'value')}, {len(happening)} at which it changes"
    return section(title, [shown, *left_out(len(happening) - MOST, "value")])


def _happens(value: VariableVariance) -> bool:
    return bool(value.left or value.hidden or any(entry.equation == value.equation for entry in value.entered))


def _cells(value: VariableVariance, script: str | None) -> tuple[str, ...]:
    over = ", ".join((*value.varying, *(f"{axis} unreduced" for axis in value.unreduced)))
    over += "".join(f", {axis} reduced" for axis in value.reduced)
    hidden = f" but may differ over {', '.join(value.hidden)}" if value.hidden else ""
    entered = dict.fromkeys(f"{e.axis} by {e.by} {e.source.text(script)}".rstrip() for e in value.entered)
    return (
        f"{value.value} = {value.primitive}",
        value.type,
        (over.removeprefix(", ") or "none") + hidden,
        ", ".join(value.left),
        "; ".join(entered),
        value.source.text(script),
    )
