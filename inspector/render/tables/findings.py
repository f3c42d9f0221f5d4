"""What is wrong, and what fixes it: worst first, and after them what is suppressed."""

from __future__ import annotations

from collections.abc import Sequence

from ...findings.fixes.apply import diff_of
from ...report import Finding, Report, Suppressed
from ...units import format_bytes
from ..finding_facts import counted, facts, suppressed_by, where
from ..table import Cell, Column, Detail, Piece, Role, Row, Table, axes_cell, plain_text

ROLES: dict[str, Role] = {"error": "error", "warning": "warning", "info": "aside"}


def findings(report: Report) -> Table:
    """The findings, and those that are suppressed, whose values are `Suppressed`."""
    found, known = report.findings, report.suppressed
    is_read = all(report.could_be_read(stage.name) for stage in report.capture.stages)
    return Table(
        id="findings",
        title="Findings",
        key="f",
        columns=(
            Column("", 7, 7),
            Column("rule", 4, 9),
            Column("where", 12, 8),
            Column("axes", 4, 5),
            Column("what", 24, 6),
            Column("", 6, 3),
            Column("saves", 6, 2, "right"),
            Column("", 8, 1),
        ),
        rows=(*(Row(_cells(each), each) for each in found), *map(_suppressed, known)),
        heading=f"Findings: {counted(report)}" if found or known else "",
        empty_text="No findings." if is_read else "No findings in what could be read.",
        unit="finding",
        total=len(found),
        selection=lambda value: value.finding if isinstance(value, Suppressed) else value,
        details=lambda value: _details(value, report),
    )


def _cells(found: Finding) -> tuple[Cell, ...]:
    verified = "" if found.trial is None else "verified" if found.trial.verified else "not verified"
    return (
        Piece(found.severity, ROLES[found.severity]),
        found.rule,
        where(found),
        axes_cell(found.axes),
        found.message,
        Piece(found.confidence, "aside"),
        "" if found.saved_bytes is None else format_bytes(found.saved_bytes),
        Piece(verified, "good" if verified == "verified" else "aside"),
    )


def _suppressed(known: Suppressed) -> Row:
    cells = (Piece("suppressed"), *_cells(known.finding)[1:])
    return Row(tuple(Piece(plain_text(cell), "aside") for cell in cells), known)


def _details(value: object, report: Report) -> Sequence[Detail]:
    """How it is known, what fixes it, and the change."""
    if isinstance(value, Suppressed):
        return [Detail("suppressed", suppressed_by(value.by))]
    if not isinstance(value, Finding):
        return ()
    change = "\n".join(diff_of(report.program, value.proposal))
    labelled = [Detail(name, text) for name, text in facts(value)]
    return [*labelled, *([Detail("change", change, is_code=True)] if change else [])]
