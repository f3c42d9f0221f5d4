"""The one painter of tables for a terminal, what other sections of a text report are made of, and its first lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ...capture.model import PHASES
from ...ir.program import Program
from ...report import Explanation, Fix, Report
from ...report.edits import diff_of
from ...units import plural
from ..finding_facts import fixes_shown, verdict
from ..overview import is_refused, nothing_sent, resources_text, subject_text
from ..printable import printable
from ..table import Cell, Column, Detail, Role, Row, Table, pieces

MAX_TRACEBACK = 24
"""Lines of a traceback, the last ones, in the short report."""


def subject_lines(report: Report) -> Iterator[RenderableType]:
    """The subject of the capture, and the resources of a step."""
    subject = data(subject_text(report))
    subject.stylize("bold", 0, len(subject.plain.partition(" · ")[0]))
    yield subject
    sent, resources = nothing_sent(report), resources_text(report)
    if sent or resources:
        yield data(" ".join(filter(None, (sent, resources[:1].upper() + resources[1:] if sent else resources))))


def failure(report: Report, *, in_full: bool = True, below_subject: bool = True) -> RenderableType | None:
    """The reason why the capture ended early, and what to do next, below the subject's line or another."""
    why = report.capture.failure
    if why is None:
        return None
    details = why.details.rstrip("\n").splitlines()
    # A traceback ends with the message.
    is_said = why.message in why.details or (below_subject and is_refused(report.capture))
    lines: list[RenderableType] = [] if is_said else [data(why.message, "red")]
    shown = details if in_full else details[-MAX_TRACEBACK:]
    if len(shown) < len(details):
        lines += left_out(len(details) - len(shown), "line", " above; --details messages")
    lines += [data(line) for line in shown]
    if why.hint:
        lines.append(Text.assemble(("hint: ", "bold"), data(why.hint)))
    if report.capture.subject is None and not report.capture.stages:
        return Group(*lines) if lines else None
    return section(f"Stopped while {PHASES[why.phase]}", lines)


def explanation(report: Report) -> RenderableType | None:
    """The story step by step, and each fix with what came of trying it."""
    return None if report.explanation is None else explained(report.explanation, report.program)


def explained(found: Explanation, program: Program) -> RenderableType:
    """An explanation as a section; `program` has the files that its fixes edit."""
    place = found.where.text()
    lines: list[RenderableType] = [data(f"{found.title}{f'   {place}' if place else ''}", "bold")]
    for number, step in enumerate(found.steps, 1):
        place = step.source.text()
        lines.append(data(f"  {number}. {step.what}{f'   {place}' if place else ''}"))
    for fix in fixes_shown(found):
        lines += _fix(fix, program)
    return section("Why it fails", lines)


def _fix(fix: Fix, program: Program) -> list[RenderableType]:
    style = "dim" if fix.experiment is None else "green" if fix.helps else "yellow"
    head = Text.assemble("  ", (f"{verdict(fix)}: ", f"bold {style}"), data(fix.title))
    return [head, *(Text("    ").append_text(line) for line in code_lines("\n".join(diff_of(program, fix))))]


def section(title: str, lines: Sequence[RenderableType]) -> RenderableType:
    """A title, and under it lines that are indented."""
    head = [data(title, "bold")] if title else []
    return Group(*head, *(Padding(line, (0, 0, 0, 2)) for line in lines))


def data(text: str, style: str = "") -> Text:
    """Text from outside: no markup and no escapes are taken from it."""
    return Text(printable(text), style)


def left_out(count: int, word: str, rest: str = "") -> Sequence[RenderableType]:
    """The line `and 2 more values`; nothing if all are shown. `rest` follows the word."""
    number = plural(count, f"more {word}") if word else f"{count:,} more"
    return [Text(f"and {number}{rest}", "dim")] if count > 0 else []


STYLES: dict[Role, str] = {
    "strong": "bold",
    "aside": "dim",
    "good": "green",
    "warning": "yellow",
    "error": "bold red",
    "added": "green",
    "removed": "red",
    "changed": "yellow",
}

SIGNS = {"+": "green", "-": "red", "@": "dim"}
"""The styles of lines of a diff."""

MAX_CODE = 16
"""Lines of a program, a diff or a message under one row."""


def table_section(table: Table, *, in_full: bool = False) -> RenderableType | None:
    """The heading and what is under it; None for a table that has neither rows nor a heading.

    With `in_full` it has all of its rows and notes, and all lines under them.
    """
    columns, rows = table.for_document()
    if not rows and not table.heading:
        return None
    lines: list[RenderableType] = [text_of(cell) for cell in table.above]
    if rows:
        shown = rows if in_full else rows[: table.most]
        if table.in_full:
            lines += [line for row in shown for line in _with_details(row, table, None if in_full else MAX_CODE)]
        else:
            lines.append(_grid(columns, [row.cells for row in shown]))
        lines += left_out(len(rows) - len(shown), table.unit)
    elif table.empty_text:
        lines.append(data(table.empty_text))
    notes = table.notes_in_full if in_full and table.notes_in_full is not None else table.notes
    return section(table.heading, [*lines, *map(text_of, notes())])


def _with_details(row: Row, table: Table, most: int | None) -> Iterator[RenderableType]:
    """The cells of a row in one line, and under it its details, of code at most so many lines."""
    yield Text("  ").join(filter(None, map(text_of, row.cells)))
    for detail in table.details(row.value):
        if detail.is_code:
            lines = code_lines(detail.text)
            yield from (Padding(line, (0, 0, 0, 2)) for line in lines[:most])
            yield from left_out(len(lines) - len(lines[:most]), "line")
        elif detail.text:
            yield _labelled(detail)


def _labelled(detail: Detail) -> RenderableType:
    if not detail.label:
        return Padding(data(detail.text), (0, 0, 0, 2))
    grid = RichTable.grid(padding=(0, 1, 0, 0))
    grid.add_row(data(f"{detail.label}:", "dim"), data(detail.text))
    return Padding(grid, (0, 0, 0, 2))


def code_lines(text: str) -> list[Text]:
    """Lines of a diff in colours, or of a program."""
    return [data(line, SIGNS.get(line[:1], "")) for line in text.splitlines() if line[:3] not in ("---", "+++")]


def _grid(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> RichTable:
    """A table without lines, and without titles where no column has one."""
    titles = [column.title for column in columns]
    grid = RichTable(*titles, box=None, pad_edge=False, header_style="dim", show_header=any(titles))
    for made, column in zip(grid.columns, columns, strict=True):
        made.overflow, made.justify = "fold", column.align
    for row in rows:
        grid.add_row(*map(text_of, row))
    return grid


def text_of(cell: Cell) -> Text:
    """A cell in the terminal's colours."""
    return Text.assemble(*((printable(piece.text), STYLES.get(piece.role, "")) for piece in pieces(cell)))
