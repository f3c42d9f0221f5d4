"""Why a function does not trace, and what mends it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...findings.fixes.apply import diff_of
from ...report import Remedy, Report
from ..explanation_words import remedies_shown, verdict
from .findings import SIGNS
from .pieces import data, section


def explanation(report: Report) -> RenderableType | None:
    """The story step by step, and each change with what came of trying it."""
    found = report.explanation
    if found is None:
        return None
    lines: list[RenderableType] = [data(found.title, "bold")]
    for number, step in enumerate(found.steps, 1):
        place = step.source.text()
        lines.append(data(f"  {number}. {step.what}{f'   {place}' if place else ''}"))
    for remedy in remedies_shown(found):
        lines += _remedy(remedy, report)
    return section("Why it does not trace", lines)


def _remedy(remedy: Remedy, report: Report) -> list[RenderableType]:
    style = {True: "green", False: "yellow", None: "dim"}[remedy.works]
    head = Text.assemble("  ", (f"{verdict(remedy)}: ", f"bold {style}"), data(remedy.what))
    diff = diff_of(report.capture, remedy.edits)[2:]
    return [head, *(data(f"    {line}", SIGNS.get(line[:1], "")) for line in diff)]
