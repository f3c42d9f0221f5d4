"""Findings and their fixes: worst first, suppressed ones last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...report import Finding, Report, Suppressed
from ...report.edits import diff_of
from ...units import format_bytes, format_seconds, grouped
from ..finding_facts import counted, evidence, fix_facts, suppressed_by, where
from ..modules import without_numbers
from ..table import Cell, Column, Detail, Piece, Role, Row, Table, axes_cell, plain_text, size_cell, titled

ROLES: dict[str, Role] = {"error": "error", "warning": "warning", "info": "aside"}


def findings(report: Report) -> Table:
    """The findings, and those that are suppressed, whose values are `Suppressed`."""
    found, known = report.findings, report.suppressed
    is_read = all(report.could_be_read(stage.name) for stage in report.capture.stages)
    limits = "" if is_read else " in what could be read"
    if report.capture.failure is not None:
        limits = " in what was captured"
    return Table(
        id="findings",
        title="Findings",
        key="2",
        columns=(
            Column("", 7, 7),
            Column("rule", 4, 9),
            Column("", where="documents"),
            Column("where", 18, 8),
            Column("axes", 6, 5),
            Column("what", 24, 6),
            Column("", 6, 3),
            Column("saves", 6, 2, align="right", where="screen"),
            Column("", 8, 1, where="screen"),
        ),
        rows=(*(Row(_cells(each), each) for each in found), *map(_suppressed, known)),
        heading=f"Findings: {counted(report)}" if found or known else "",
        empty_text=f"No findings{limits}.",
        unit="finding",
        total=len(found),
        selection=lambda value: value.finding if isinstance(value, Suppressed) else value,
        details=lambda value: _details(value, report),
        in_full=True,
    )


def matters(report: Report) -> Table:
    """Errors and warnings with their first fix, those that cost most first; what is alike in all layers as one row."""
    listed = [each for each in report.findings if each.severity != "info"]
    by_subject = grouped(
        ((each.rule, each.severity, where(each), each.axes, without_numbers(each.subject), _fix(each)), each)
        for each in listed
    )
    alike = sorted(by_subject.values(), key=lambda found: (found[0].rank, *_cost(found)))
    first_with: dict[object, Finding] = {}
    for first, *_ in alike:
        for change in _changes(first):
            first_with.setdefault(change, first)
    return Table(
        id="matters",
        title="What matters",
        columns=titled("", "", "", ""),
        rows=tuple(map(_short, alike)),
        most=8,
        unit="finding",
        heading="What matters" if listed else "",
        details=lambda found: _message_and_fix(found, first_with),
        in_full=True,
    )


def _cost(found: Sequence[Finding]) -> tuple[float, int]:
    """The sorting key that puts the largest savings first: in time, where that is known, then in bytes."""
    return -sum(each.saved_seconds or 0.0 for each in found), -sum(each.saved_bytes or 0 for each in found)


def _short(found: Sequence[Finding]) -> Row:
    first = found[0]
    times = f"{len(found)} × " if len(found) > 1 else ""
    rule = f"{times}{first.rule} {first.slug}"
    cells = (Piece(first.severity, ROLES[first.severity]), rule, Piece(where(first), "strong"), _saves(found))
    return Row(cells, tuple(found))


def _saves(found: Sequence[Finding]) -> str:
    sizes, seconds = [each.saved_bytes for each in found], [each.saved_seconds for each in found]
    size, time = sum(each or 0 for each in sizes), sum(each or 0.0 for each in seconds)
    if not size or None in sizes:
        return ""
    estimate = f", est. {format_seconds(time)}" if time > 0 and None not in seconds else ""
    return f"saves {format_bytes(size)} per device per step{estimate}"


def _fix(found: Finding) -> str:
    return "" if found.advised is None else found.advised.title


def _changes(found: Finding) -> tuple[object, ...]:
    advised = found.advised
    edits = (advised.edits,) if advised is not None and advised.edits else ()
    return ((found.rule, _fix(found)), *edits)


def _message_and_fix(found: object, first_with: Mapping[object, Finding]) -> Sequence[Detail]:
    """The message, and the fix where it is the first finding that has it."""
    if not isinstance(found, tuple):
        return ()
    first: Finding = found[0]
    is_first = all(first_with[change] is first for change in _changes(first))
    known = fix_facts(first, in_full=False) if is_first else []
    return [Detail("", first.message), *(Detail(name, text) for name, text in known)]


def _cells(found: Finding) -> tuple[Cell, ...]:
    state = "" if found.advised is None else found.advised.state
    return (
        Piece(found.severity, ROLES[found.severity]),
        found.rule,
        found.slug,
        where(found),
        axes_cell(found.axes),
        found.message,
        Piece(found.confidence, "aside"),
        "" if found.saved_bytes is None else size_cell(found.saved_bytes),
        Piece(state, "good" if state == "tried" else "aside"),
    )


def _suppressed(known: Suppressed) -> Row:
    cells = (Piece("suppressed"), *_cells(known.finding)[1:])
    return Row(tuple(Piece(plain_text(cell), "aside") for cell in cells), known)


def _details(value: object, report: Report) -> Sequence[Detail]:
    if isinstance(value, Suppressed):
        return [Detail("suppressed", suppressed_by(value.by))]
    if not isinstance(value, Finding):
        return ()
    change = "\n".join(diff_of(report.program, value.proposal))
    fix = [Detail(name, text) for name, text in fix_facts(value)]
    known = [Detail(name, text) for name, text in evidence(value)]
    return [*fix, *([Detail("change", change, is_code=True)] if change else []), *known]
