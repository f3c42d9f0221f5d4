"""Reports, comparisons, diffs and the results of checks as one HTML file each: findings first, then the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...parsers.source import Frame
from ..capture.model import PHASES
from ..check.verdict import Verdict
from ..diff.diff import Diff
from ..diff.headline import headline
from ..diff.targets import Comparison
from ..report import Finding, Report
from .finding_facts import fixes_shown, verdict, where
from .html_text import cell, code, diff_lines, element, facts, fragment, page, table_section, text
from .subject_line import subject_line
from .table import Detail, Table, plain_text
from .tables import TABLES
from .tables.comparison import budgets_table, collectives_by_cause, diff_tables, summary, targets, word
from .tables.findings import ROLES

AROUND = 2
"""Lines before and after the one that an excerpt is of."""


def report_page(report: Report) -> str:
    """One report."""
    return page(subject_line(report).plain, _parts(report))


def report_fragment(report: Report) -> str:
    """The same for a notebook."""
    return fragment(_parts(report))


def comparison_page(comparison: Comparison) -> str:
    """The targets side by side, and under that each report."""
    title = ", ".join(comparison.targets)
    tables = [table_section(targets(comparison)), table_section(collectives_by_cause(comparison))]
    return page(title, [*tables, *(part for report in comparison.reports for part in _parts(report))])


def diff_page(found: Diff) -> str:
    """What differs, the headline first."""
    return page(headline(found), _diff_parts(found))


def verdicts_page(verdicts: Sequence[Verdict]) -> str:
    """For each function whether it passed, and all that did not."""
    return page("Checks", (part for each in verdicts for part in _verdict_parts(each)))


def _verdict_parts(each: Verdict) -> Iterator[str]:
    yield element("h1", f"{cell(word(each))} {text(each.name)}")
    yield element("p", text(summary(each)))
    if each.broken:
        yield table_section(budgets_table(each))
    if each.changes is not None and each.differs:
        yield from _diff_parts(each.changes)


def _diff_parts(found: Diff) -> Iterator[str]:
    yield element("h1", text(headline(found)))
    yield facts([("before", found.before.title), ("after", found.after.title)])
    yield from map(table_section, diff_tables(found))


def _parts(report: Report) -> Iterator[str]:
    yield element("h1", text(subject_line(report).plain))
    yield from _failure(report)
    for make in TABLES:
        table = make(report)
        yield _findings(table, report) if table.id == "findings" else table_section(table)
        yield from _folded(table)


def _failure(report: Report) -> Iterator[str]:
    """Why the capture ended, why the function does not trace, and what fixes that."""
    failure, found = report.capture.failure, report.explanation
    if failure is not None:
        yield element("h2", text(f"Stopped while {PHASES[failure.phase]}"))
        yield element("p", text(failure.message), "error")
        yield facts([("hint", failure.hint or "")])
        yield code((line, "") for line in failure.details.splitlines()) if failure.details else ""
    if found is not None:
        yield element("h2", text(f"Why it does not trace: {found.title}"))
        steps = (f"{step.what}   {step.source.text()}".rstrip() for step in found.steps)
        yield element("ol", "".join(element("li", text(step)) for step in steps))
        for each in fixes_shown(found):
            yield facts([(verdict(each), each.title)])


def _findings(table: Table, report: Report) -> str:
    """Each finding in full, or that there are none."""
    if not table.rows:
        return element("p", text(table.empty_text)) if report.capture.failure is None else ""
    parts = [element("h2", text(table.heading))]
    for row in table.rows:
        selected = table.selection(row.value)
        if isinstance(selected, Finding):
            parts.append(_finding(selected, table.details(row.value), report))
    return element("section", "\n".join(parts))


def _folded(table: Table) -> Iterator[str]:
    """The texts of rows that do not fit into a cell, to be opened."""
    for row in table.rows[: table.most] if table.id != "findings" else ():
        for detail in table.details(row.value):
            if detail.is_code and detail.text:
                title = " ".join(filter(None, map(plain_text, row.cells)))
                folded = element("summary", text(title)) + code((line, "") for line in detail.text.splitlines())
                yield element("details", folded)


def _finding(found: Finding, details: Sequence[Detail], report: Report) -> str:
    severity = element("span", text(f"{found.severity} {found.rule} {found.slug}"), ROLES[found.severity])
    head = f"{severity} {text(where(found))} {element('span', text(found.confidence), 'aside')}"
    labelled = [(detail.label, detail.text) for detail in details if not detail.is_code]
    changes = [diff_lines(detail.text.splitlines()) for detail in details if detail.is_code]
    frame = found.place.source.frame
    excerpt = "" if frame is None else _excerpt(report, frame)
    parts = [element("p", head), element("p", text(found.message)), excerpt, facts(labelled), *changes]
    return element("article", "\n".join(filter(None, parts)))


def _excerpt(report: Report, frame: Frame) -> str:
    """The line of a frame with those around it; empty where the file is not there."""
    source = report.program.file(frame.file)
    lines = [] if source is None else source.text().splitlines()
    if not 0 < frame.line <= len(lines):
        return ""
    first = max(frame.line - AROUND, 1)
    shown = enumerate(lines[first - 1 : frame.line + AROUND], first)
    return code((f"{number:>5}  {line}", "here" if number == frame.line else "") for number, line in shown)
