"""An entry of a table in full: its cells, and the details that its table has for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from textual.content import Content

from ..inspector.capture.model import Failure, OutputSummary, Value
from ..inspector.render.finding_facts import fixes_shown, verdict
from ..inspector.render.table import Detail, Row, Table, plain_text
from ..inspector.render.tables.captured import arguments, problems
from ..inspector.render.tables.execution import live
from ..inspector.render.tables.findings import findings
from ..inspector.render.tables.passes import passes
from ..inspector.report import Finding, PlacedMessage, Report
from ..inspector.report.changes import PassChange
from ..inspector.report.edits import diff_of
from ..inspector.report.places import Place
from ..parsers.errors import Problem
from .painted import axis_hues, content, data, fact, folded, title

Entry = Value | OutputSummary | PlacedMessage | Failure | Problem | PassChange

Selected = Place | Entry

TABLE_OF: Mapping[type, Callable[[Report], Table]] = {
    Finding: findings,
    Value: arguments,
    OutputSummary: live,
    PlacedMessage: problems,
    Failure: problems,
    Problem: problems,
    PassChange: passes,
}
"""The table that lists an entry."""

MAX_CODE_LINES = 400
"""Lines of a diff, of values or of a message that are shown."""

BESIDE = 2
"""Lines of a cell that stand beside its label; what is longer stands under it."""

SIGNS = {"+": "$success", "-": "$error", "@": "$aside"}


def entry_details(report: Report, entry: Entry | Finding, width: int) -> Iterator[Content]:
    """The row of an entry, column by column, and under it what else is known."""
    table = TABLE_OF[type(entry)](report)
    row = next((row for row in table.rows if table.selection(row.value) == entry), None)
    details = [*(table.details(row.value) if row is not None and row.value != entry else ()), *table.details(entry)]
    if row is not None:
        yield from _cells(table, row, report, {detail.label for detail in details}, width)
    for detail in details:
        if detail.text:
            yield Content("")
            yield from detail_lines(detail, width)


def _cells(table: Table, row: Row, report: Report, stated: set[str], width: int) -> Iterator[Content]:
    """On one line what is most important, and what has no title; then all else that the details do not say."""
    hues = axis_hues(report.meshes)
    named = [(column, cell) for column, cell in zip(table.columns, row.cells, strict=True) if plain_text(cell)]
    most = max(named, key=lambda each: each[0].importance)[0]
    head = [content(cell, hues) for column, cell in named if not column.title or column is most]
    yield from folded(Content("  ").join(head).stylize("bold"), width)
    yield Content("")
    for column, cell in named:
        if not column.title or column is most or column.title in stated:
            continue
        lines = list(fact(column.title, content(cell, hues), width))
        if len(lines) <= BESIDE:
            yield from lines
        else:
            yield Content("")
            yield from folded(content(cell, hues), width)


def detail_lines(detail: Detail, width: int) -> Iterator[Content]:
    """A detail under its label."""
    if detail.label:
        yield title(detail.label)
    if not detail.is_code:
        yield from folded(data(detail.text), width)
        return
    yield from code_lines(detail.text, width)


def code_lines(text: str, width: int) -> Iterator[Content]:
    """A diff in colours, or other lines as they are, but for what underlines a line that is broken."""
    lines = [line for line in text.splitlines() if len(line) <= width or line.strip(" ^~")]
    for line in lines[:MAX_CODE_LINES]:
        yield from folded(data(line, SIGNS.get(line[:1], "")), width)
    if (more := len(lines) - MAX_CODE_LINES) > 0:
        yield Content.styled(f"and {more:,} more lines", "$aside")


def explanation_details(report: Report, width: int) -> Iterator[Content]:
    """Return why a program fails, step by step, and each fix with its change; none if unknown."""
    found = report.explanation
    if found is None:
        return
    yield title("why it fails")
    yield from folded(data(found.title), width)
    for number, step in enumerate(found.steps, 1):
        yield from folded(data(f"{number}. {step.what}   {step.source.text()}".rstrip()), width)
    for fix in fixes_shown(found):
        yield Content("")
        yield from folded(data(verdict(fix), "bold $success" if fix.helps else "$warning"), width)
        yield from folded(data(fix.title), width)
        yield from code_lines("\n".join(diff_of(report.program, fix)[2:]), width)
    yield Content("")
