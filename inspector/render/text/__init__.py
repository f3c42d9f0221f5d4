"""The Report as one reads it in a terminal, or pastes it into an issue.

By default it fits a page: what was captured, what matters, what is communicated, and what is in order. `details` adds
sections in full.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...report import Finding, Report
from ..finding_facts import largest_note, notes_text
from ..overview import attention, in_order, nothing_sent, sent_elsewhere
from ..renderers import SECTIONS
from ..table import Table
from ..tables import tables_in
from ..tables.captured import other_programs, worst_problems
from ..tables.communication import axes, communication
from ..tables.findings import matters
from ..tables.shardings import only_written, shardings
from .tables import data, explanation, failure, section, subject_lines, table_section, text_of

WIDTH = 1000
"""Columns in which two states of a part are compared."""


def print_report(report: Report, console: Console, details: Collection[str] = (), begun: Report | None = None) -> None:
    """Print the overview, and the sections that are named: some of `SECTIONS`, or `all`.

    `begun` is an earlier state of the report, whose beginning is printed already: what is still true of it is left out.
    """
    sections = SECTIONS if "all" in details else tuple(details)
    printed = set() if begun is None else set(map(_plain, _beginning(begun, sections)))
    is_short = _is_short(report, details)
    for number, part in enumerate(
        _parts(report, sections, frozenset(map(_shown, () if begun is None else _final(begun))))
    ):
        if part is not None and _plain(part) not in printed:
            if number and not is_short:
                console.print()
            console.print(part)


def print_beginning(report: Report, console: Console, details: Collection[str] = ()) -> None:
    """Print what is known as soon as the program is compiled, for `print_report` to go on from."""
    for number, part in enumerate(_beginning(report, SECTIONS if "all" in details else tuple(details))):
        if number:
            console.print()
        console.print(part)


def _beginning(report: Report, details: Collection[str]) -> Iterator[RenderableType]:
    report = replace(report, findings=_final(report))
    parts = (
        _head(report),
        _findings(report, details, frozenset()),
        table_section(axes(report)),
        table_section(communication(report)),
    )
    return (part for part in parts if part is not None)


def _final(report: Report) -> tuple[Finding, ...]:
    """The findings that no experiment changes: a warning may get further fixes."""
    return tuple(
        found
        for found in report.findings
        if found.severity == "error" and all(fix.state != "untried" for fix in found.fixes)
    )


def _shown(found: Finding) -> Hashable:
    """The parts of a finding that a reader sees: experiments may add fixes that do not help, and are not shown."""
    advised = found.advised
    return found.rule, found.place, found.message, found.saved_bytes, advised and (advised.title, advised.state)


def _plain(part: RenderableType) -> str:
    console = Console(file=StringIO(), width=WIDTH)
    with console.capture() as captured:
        console.print(part)
    return captured.get()


def _is_short(report: Report, details: Collection[str]) -> bool:
    """Return whether a report is short enough to do without blank lines and pointers to more."""
    return bool(nothing_sent(report)) and not details and not report.findings and report.capture.failure is None


def _head(report: Report) -> RenderableType:
    """The lines that are known once the program is compiled: they may be printed then, and are printed once."""
    return Group(*subject_lines(replace(report, elsewhere=None)))


def _findings(report: Report, details: Collection[str], printed: frozenset[Hashable]) -> RenderableType | None:
    """Errors and warnings, without the findings that are printed already."""
    if "findings" in details:
        return None
    return table_section(
        matters(replace(report, findings=tuple(each for each in report.findings if _shown(each) not in printed)))
    )


def _parts(report: Report, details: Collection[str], printed: frozenset[Hashable]) -> Iterator[RenderableType | None]:
    yield _head(report)
    yield explanation(report)
    yield failure(report, in_full="messages" in details)
    yield _findings(report, details, printed)
    yield table_section(axes(report))
    yield table_section(communication(report))
    if "messages" not in details:
        yield table_section(worst_problems(report))
    yield _state(report, details)
    if "shardings" not in details and only_written(report):
        yield table_section(shardings(report))
    for name in details:
        tables = list(_tables(report, name))
        parts = [part for table in tables if (part := table_section(table, in_full=True)) is not None]
        yield from parts if parts or details == SECTIONS else _reasons(name, tables)
    yield table_section(other_programs(report))
    if not details and report.capture.failure is None and not _is_short(report, details):
        yield Text(f"more: -v, or --details {','.join(SECTIONS)}", "dim")


def _tables(report: Report, section: str) -> Iterator[Table]:
    """The tables of a section; arguments and outputs by themselves where they are not among the shardings."""
    for table in tables_in(section):
        made = table(report)
        if made.id != "values" or not report.shardings:
            yield made


def _reasons(name: str, tables: Sequence[Table]) -> Iterator[RenderableType]:
    """The title of a section that has nothing to show, and why it has nothing."""
    if reasons := dict.fromkeys(table.empty_text for table in tables if table.empty_text):
        yield section(name.capitalize(), [data(reason) for reason in reasons])


def _state(report: Report, details: Collection[str]) -> RenderableType | None:
    lines = [text_of(cell) for cell in attention(report)]
    if order := in_order(report):
        lines.append(Text.assemble(("ok  ", "green"), data(order)))
    if elsewhere := sent_elsewhere(report):
        lines.append(data(elsewhere, "dim"))
    if "findings" not in details and (notes := notes_text(report)):
        lines.append(data(f"{notes}: --details findings", "dim"))
        lines += [data(f"  {largest}", "dim")] if (largest := largest_note(report)) else []
    return Group(*lines) if lines else None
