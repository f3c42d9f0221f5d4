"""What is wrong, and what mends it."""

from __future__ import annotations

from collections import Counter

from rich.console import RenderableType
from rich.text import Text

from ...findings.table import SEVERITIES
from ...report import Finding, Report, Suppressed
from ...units import format_bytes, format_seconds, plural
from .devices import place_text
from .pieces import data, left_out, section

MOST = 20
"""Findings that are shown."""

MOST_RELATED = 4
"""Other places of one finding that are shown."""

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}


def findings(report: Report) -> RenderableType | None:
    """Each with its place, its evidence and its fix; of those that are suppressed, by what."""
    found, known = report.findings, report.suppressed
    if not found and not known:
        return None
    lines = [line for each in found[:MOST] for line in _lines(each)]
    lines += left_out(len(found) - MOST, "findings")
    lines += [_suppressed(each) for each in known[:MOST]]
    return section(f"Findings: {counted(report)}", [*lines, *left_out(len(known) - MOST, "that are suppressed")])


def counted(report: Report) -> str:
    """`1 error, 2 warnings, 1 for information, 3 suppressed`."""
    counts = Counter(each.severity for each in report.findings)
    words = [plural(counts[each], each) for each in SEVERITIES if counts[each] and each != "info"]
    words += [f"{counts['info']} for information"] if counts["info"] else []
    words += [f"{len(report.suppressed)} suppressed"] if report.suppressed else []
    return ", ".join(words)


def _suppressed(known: Suppressed) -> RenderableType:
    found, by = known.finding, known.by
    where = f"{by.file.rpartition('/')[2]}{f':{by.line}' if by.line else ''}"
    reason = by.reason or "no reason given"
    return data(f"{found.rule} {found.slug}  {_place(found)}  suppressed in {where}: {reason}", "dim")


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
