"""What is wrong, and what fixes it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...findings.fixes.apply import diff_of
from ...report import Finding, Report, Suppressed
from ..finding_facts import counted, facts, suppressed_by, where
from .pieces import data, left_out, section

MOST = 20
"""Findings that are shown."""

MOST_DIFF = 16
"""Lines of one finding's diff."""

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
SIGNS = {"+": "green", "-": "red", "@": "dim"}


def findings(report: Report) -> RenderableType | None:
    """Each with its place, its evidence and its fix; of those that are suppressed, by what."""
    found, known = report.findings, report.suppressed
    if not found and not known:
        return None
    lines = [line for each in found[:MOST] for line in _lines(each, report)]
    lines += left_out(len(found) - MOST, "finding")
    lines += [_suppressed(each) for each in known[:MOST]]
    return section(f"Findings: {counted(report)}", [*lines, *left_out(len(known) - MOST, "", " that are suppressed")])


def _lines(found: Finding, report: Report) -> list[RenderableType]:
    head = Text.assemble(
        (f"{found.rule} {found.slug}", STYLES[found.severity]), data(f"  {found.confidence}  {where(found)}", "bold")
    )
    lines = [("", found.message), *facts(found)]
    diff = diff_of(report.program, found.proposal)[2:]  # without the names of the file, which stand above
    return [
        head,
        *(Text.assemble("  ", (f"{name}: " if name else "", "bold"), data(text)) for name, text in lines),
        *(data(f"    {line}", SIGNS.get(line[:1], "")) for line in diff[:MOST_DIFF]),
        *left_out(len(diff) - MOST_DIFF, "line", " of the change"),
    ]


def _suppressed(known: Suppressed) -> RenderableType:
    found = known.finding
    return data(f"{found.rule} {found.slug}  {where(found)}  suppressed {suppressed_by(known.by)}", "dim")
