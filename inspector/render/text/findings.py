"""What is wrong, and what mends it."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.text import Text

from ...findings.table import SEVERITIES
from ...report import Finding, Report
from ...units import format_bytes, format_seconds, plural
from .devices import place_text
from .pieces import data, left_out, section

MOST = 20
"""Findings that are shown."""

MOST_RELATED = 4
"""Other places of one finding that are shown."""

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}


def findings(report: Report) -> RenderableType | None:
    """Each with its place, its evidence and its fix."""
    found = report.findings
    if not found:
        return None
    counts = Counter(each.severity for each in found)
    title = "Findings: " + ", ".join(
        plural(counts[each], each) for each in SEVERITIES if counts[each] and each != "info"
    )
    if counts["info"]:
        title = f"{title}{', ' if title[-1] != ' ' else ''}{counts['info']} for information"
    lines = [line for each in found[:MOST] for line in _lines(each)]
    return section(title, [*lines, *left_out(len(found) - MOST, "findings")])


def _lines(found: Finding) -> list[RenderableType]:
    head = Text.assemble(
        (f"{found.rule} {found.slug}", STYLES[found.severity]), data(f"  {found.confidence}  {_place(found)}", "bold")
    )
    lines = [("", found.message), *found.evidence]
    if found.related:
        places = dict.fromkeys(f"{place.what} {place_text(place.source)}".rstrip() for place in found.related)
        more = f" and {len(places) - MOST_RELATED} more" if len(places) > MOST_RELATED else ""
        lines.append(("see", "; ".join(list(places)[:MOST_RELATED]) + more))
    if found.fix is not None:
        lines.append(("fix", found.fix))
    if found.saved_bytes is not None:
        seconds = "" if found.saved_seconds is None else f", {format_seconds(found.saved_seconds)}"
        lines.append(("saves", f"{format_bytes(found.saved_bytes)} of what each device sends{seconds}, each time"))
    return [head, *(Text.assemble("  ", (f"{name}: " if name else "", "bold"), data(text)) for name, text in lines)]


def _place(found: Finding) -> str:
    return place_text(found.place.source) or found.place.what
