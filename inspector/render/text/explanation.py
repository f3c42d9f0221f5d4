"""Why a function does not trace, and what fixes it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...findings.fixes.apply import diff_of
from ...report import Fix, Report
from ..explanation_words import fixes_shown, verdict
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
    for fix in fixes_shown(found):
        lines += _fix(fix, report)
    return section("Why it does not trace", lines)


def _fix(fix: Fix, report: Report) -> list[RenderableType]:
    style = "dim" if fix.trial is None else "green" if fix.verified else "yellow"
    head = Text.assemble("  ", (f"{verdict(fix)}: ", f"bold {style}"), data(fix.title))
    diff = diff_of(report.program, fix)[2:]
    return [head, *(data(f"    {line}", SIGNS.get(line[:1], "")) for line in diff)]
