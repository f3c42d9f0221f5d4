"""Reports, diffs and the results of checks as Markdown, for the comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..report import Finding, Report
from ..report.changes import Diff
from ..report.edits import diff_of
from ..report.verdict import Verdict
from ..units import plural
from .finding_facts import counted, facts, fixes_shown, verdict, where
from .headline import headline
from .overview import subject_text
from .printable import printable, without_commands
from .table import Cell, Piece, Table, plain_text
from .tables.collectives import collectives, programs
from .tables.comparison import budgets_table, diff_tables, verdicts_table
from .tables.findings import findings

_MARKUP = re.compile(r"([\\`*_\[\]<>|~&#$!])")

_START = re.compile(r"(?:[-+=:]|\d+(?=[.)]))")
"""Characters that may begin a list, or a line under a title."""

_LINKED = re.compile(r"(@|#|(?i:(?<=http)|(?<=https)|(?<=ftp)|(?<=xmpp)|(?<=mailto)):|(?i:(?<=www))\.)(?=\S)")
"""Text that becomes a link even without markup: mentions, issues, addresses. A comment breaks them."""


def plain(text: str) -> str:
    """On one line: no markup, links or mentions are taken from it."""
    line = " ".join(printable(text).split())
    escaped = _LINKED.sub(r"\1<!-- -->", _MARKUP.sub(r"\\\1", line))
    begins = _START.match(escaped)
    if begins is None:
        return escaped
    return f"{begins[0]}\\{escaped[begins.end() :]}" if begins[0].isdigit() else f"\\{escaped}"


def code(text: str, language: str = "") -> str:
    """A block of code, fenced by more backticks than there are in it."""
    shown = without_commands(printable(text))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", shown)), 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


MAX_FINDINGS = 40
"""Findings, and rows of a table."""

SIGNS = {"error": "🛑", "warning": "⚠️", "info": "ℹ️"}


def to_markdown(reports: Sequence[Report]) -> str:
    """All reports, one under the other."""
    return "\n\n---\n\n".join("\n\n".join(_parts(report)) for report in reports) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield f"### {plain(subject_text(report))}"
    failure = report.capture.failure
    if failure is not None:
        yield f"**Stopped:** {plain(failure.message)}"
        if failure.details:
            yield _folded("Traceback", code(failure.details.rstrip("\n")))
        yield from _explanation(report)
    elif not report.findings:
        yield findings(report).empty_text
    if report.findings or report.suppressed:
        yield f"**Findings:** {plain(counted(report))}"
    for found in report.findings[:MAX_FINDINGS]:
        yield _finding(found, report)
    if (more := len(report.findings) - MAX_FINDINGS) > 0:
        yield f"and {more} more findings"
    if report.suppressed:
        rows = [
            (f"{k.finding.rule} {k.finding.slug}", where(k.finding), k.by.reason)
            for k in report.suppressed[:MAX_FINDINGS]
        ]
        cells = [tuple(map(plain, row)) for row in rows]
        yield _folded("Suppressed", table(("finding", "where", "reason"), cells))
    yield from _collectives(report)


def _explanation(report: Report) -> Iterator[str]:
    found = report.explanation
    if found is None:
        return
    steps = (f"{plain(step.what)} {plain(step.source.text())}".rstrip() for step in found.steps)
    yield "\n".join([f"**Why:** {plain(found.title)}", "", *(f"{n}. {step}" for n, step in enumerate(steps, 1))])
    for fix in fixes_shown(found):
        yield f"**{plain(verdict(fix))}:** {plain(fix.title)}"
        diff = diff_of(report.program, fix)
        if diff:
            yield code("\n".join(diff), "diff")


def _finding(found: Finding, report: Report) -> str:
    head = f"{SIGNS[found.severity]} **{found.rule} {found.slug}** at **{plain(where(found))}**, {found.confidence}  "
    lines = [head, plain(found.message), "", *(f"- **{plain(name)}:** {plain(text)}" for name, text in facts(found))]
    diff = diff_of(report.program, found.proposal)
    return "\n".join(lines) + (f"\n\n{code(chr(10).join(diff), 'diff')}" if diff else "")


def _collectives(report: Report) -> Iterator[str]:
    shown = collectives(report)
    if shown.rows:
        yield _folded(plain(shown.heading), _table(shown))
    elif programs(report):
        yield plain(f"{shown.heading}: {shown.empty_text}")


def diff_to_markdown(found: Diff) -> str:
    """The headline, and tables under it; what is only for the curious is folded."""
    parts = [f"**{plain(headline(found))}**", f"{plain(found.before.title)} → {plain(found.after.title)}"]
    for each in diff_tables(found):
        folded = each.id in ("insides", "amounts")
        parts += [_folded(each.heading, _table(each))] if folded else [plain(each.heading), _table(each)]
    return "\n\n".join(parts) + "\n"


def verdicts_to_markdown(verdicts: Sequence[Verdict]) -> str:
    """A table of all, and under it what differs."""
    parts = [_table(verdicts_table(verdicts))]
    for each in verdicts:
        parts += [f"### {plain(each.name)}"] if not each.passed else []
        parts += [_table(budgets_table(each))] if each.broken else []
        parts += [diff_to_markdown(each.changes).rstrip()] if each.changes is not None and each.differs else []
    return "\n\n".join(parts) + "\n"


def _table(shown: Table) -> str:
    columns, rows = shown.for_document()
    most = shown.most or MAX_FINDINGS
    text = table([column.title for column in columns], [tuple(map(_cell, row.cells)) for row in rows[:most]])
    more = [f"and {plural(len(rows) - most, f'more {shown.unit}')}"] if len(rows) > most else []
    return "\n\n".join([text, *more, *(plain(plain_text(note)) for note in shown.notes())])


def _cell(cell: Cell) -> str:
    """Good and bad cells stand out without colours, too."""
    text = plain(plain_text(cell))
    return f"**{text}**" if isinstance(cell, Piece) and cell.role == "error" else text


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
