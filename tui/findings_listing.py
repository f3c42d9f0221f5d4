"""The findings as rows: worst first, and after them those that are suppressed."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from ..inspector.render.finding_facts import where
from ..inspector.report import Finding, Report
from ..inspector.units import format_bytes
from .columns import Column
from .pieces import axes_content, data
from .row_table import Row

FINDINGS = (
    Column("", 7, 7),
    Column("rule", 4, 9),
    Column("where", 12, 8),
    Column("axes", 4, 5),
    Column("what", 24, 6),
    Column("", 6, 3),
    Column("saves", 6, 2, "right"),
    Column("", 8, 1),
)

COLOURS = {"error": "bold $error", "warning": "$warning", "info": "$aside"}


def finding_rows(report: Report, hues: Mapping[str, str]) -> list[Row]:
    """A row for each, by its number among the findings, or among the suppressed."""
    rows = [Row(("told", number), _cells(found, hues)) for number, found in enumerate(report.findings)]
    for number, known in enumerate(report.suppressed):
        cells = (Content("suppressed"), *_cells(known.finding, hues)[1:])
        rows.append(Row(("suppressed", number), tuple(Content.styled(cell.plain, "$aside") for cell in cells)))
    return rows


def finding_of(report: Report, key: object) -> Finding | None:
    """The finding that a row is about."""
    match key:
        case ("told", int(number)) if number < len(report.findings):
            return report.findings[number]
        case ("suppressed", int(number)) if number < len(report.suppressed):
            return report.suppressed[number].finding
    return None


def _cells(found: Finding, hues: Mapping[str, str]) -> tuple[Content, ...]:
    verified = "" if found.trial is None else "verified" if found.trial.verified else "not verified"
    return (
        Content.styled(found.severity, COLOURS[found.severity]),
        data(found.rule),
        data(where(found)),
        axes_content(found.axes, hues),
        data(found.message),
        data(found.confidence, "$aside"),
        Content("" if found.saved_bytes is None else format_bytes(found.saved_bytes)),
        Content.styled(verified, "$success" if verified == "verified" else "$aside"),
    )
