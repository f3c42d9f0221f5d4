"""Reports, diffs and the results of checks as Markdown, for the comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..check.verdict import Verdict
from ..diff.diff import Diff
from ..diff.headline import headline
from ..findings.fixes.apply import diff_of
from ..report import Finding, Report
from .change_rows import MOST as MOST_CHANGES
from .change_rows import ChangeRow, amount_rows, border_rows, change_rows, concern_rows, inside_rows
from .explanation_words import fixes_shown, verdict
from .finding_facts import counted, facts, where
from .markdown_text import code, plain, table
from .subject_line import subject_line
from .table import plain_text
from .tables.collectives import collectives, programs
from .text.verdict import summary

MOST = 40
"""Findings, and rows of a table."""

SIGNS = {"error": "🛑", "warning": "⚠️", "info": "ℹ️"}


def to_markdown(reports: Sequence[Report]) -> str:
    """All reports, one under the other."""
    return "\n\n---\n\n".join("\n\n".join(_parts(report)) for report in reports) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield f"### {plain(subject_line(report).plain)}"
    failure = report.capture.failure
    if failure is not None:
        yield f"**Stopped:** {plain(failure.message)}"
        if failure.details:
            yield _folded("Traceback", code(failure.details.rstrip("\n")))
        yield from _explanation(report)
    elif not report.findings:
        yield "No findings."
    if report.findings or report.suppressed:
        yield f"**Findings:** {plain(counted(report))}"
    for found in report.findings[:MOST]:
        yield _finding(found, report)
    if (more := len(report.findings) - MOST) > 0:
        yield f"and {more} more findings"
    if report.suppressed:
        rows = [(f"{k.finding.rule} {k.finding.slug}", where(k.finding), k.by.reason) for k in report.suppressed[:MOST]]
        yield _folded("Suppressed", table(("finding", "where", "reason"), rows))
    yield from _collectives(report)


def _explanation(report: Report) -> Iterator[str]:
    found = report.explanation
    if found is None:
        return
    steps = (f"{plain(step.what)} {plain(step.source.text())}".rstrip() for step in found.steps)
    yield "\n".join([f"**Why:** {plain(found.title)}", "", *(f"{n}. {step}" for n, step in enumerate(steps, 1))])
    for fix in fixes_shown(found):
        yield f"**{plain(verdict(fix))}:** {plain(fix.title)}"
        diff = diff_of(report.capture, fix)
        if diff:
            yield code("\n".join(diff), "diff")


def _finding(found: Finding, report: Report) -> str:
    head = f"{SIGNS[found.severity]} **{found.rule} {found.slug}** at **{plain(where(found))}**, {found.confidence}  "
    lines = [head, plain(found.message), "", *(f"- **{plain(name)}:** {plain(text)}" for name, text in facts(found))]
    diff = diff_of(report.capture, found.proposal)
    return "\n".join(lines) + (f"\n\n{code(chr(10).join(diff), 'diff')}" if diff else "")


def _collectives(report: Report) -> Iterator[str]:
    shown = collectives(report)
    if not programs(report):
        return
    columns, rows = shown.for_document()
    if not rows:
        yield plain(f"{shown.heading}: {shown.empty_text}")
        return
    cells = [tuple(map(plain_text, row)) for row in rows[:MOST]]
    more = f"\n\nand {len(rows) - MOST} more rows" if len(rows) > MOST else ""
    yield _folded(plain(shown.heading), table([column.title for column in columns], cells) + more)


def diff_to_markdown(found: Diff) -> str:
    """The headline, and tables under it; what is only for the curious is folded."""
    parts = [f"**{plain(headline(found))}**", f"{plain(found.before.title)} → {plain(found.after.title)}"]
    if found.changes:
        columns = ("", "collective", "axes", "per device", "wire", "pass", "from")
        rows = change_rows(found)
        parts.append(table(columns, list(map(_change, rows[:MOST_CHANGES]))))
        parts += _left_out(rows, "changes")
        parts += [f"The same on both sides: {found.same}."] if found.same else []
    if found.borders:
        parts.append(table(("", "sharding"), border_rows(found)[:MOST_CHANGES]))
        parts += _left_out(found.borders, "shardings")
    if found.concerns:
        parts.append(table(("finding", ""), [row[1:] for row in concern_rows(found)[:MOST_CHANGES]]))
        parts += _left_out(found.concerns, "findings")
    if found.insides:
        shown = table(("inside the program", "sharding"), inside_rows(found)[:MOST_CHANGES])
        inside = "\n\n".join([shown, *_left_out(found.insides, "shardings")])
        parts.append(_folded("Shardings inside the program", inside))
    if rest := amount_rows(found):
        parts.append(_folded("Memory, time, operations", table(("", ""), rest)))
    return "\n\n".join(parts) + "\n"


def _change(row: ChangeRow) -> Sequence[str]:
    return (
        f"{row.sign} {row.numbers}".rstrip(),
        row.what,
        row.axes,
        " ⇒ ".join(row.types),
        row.wire,
        row.direction,
        row.place,
    )


def _left_out(rows: Sequence[object], word: str) -> list[str]:
    return [f"and {len(rows) - MOST_CHANGES} more {word}"] if len(rows) > MOST_CHANGES else []


def verdicts_to_markdown(verdicts: Sequence[Verdict]) -> str:
    """A table of all, and under it what differs."""
    rows = [("passed" if each.passed else "**failed**", each.name, summary(each)) for each in verdicts]
    lines = ["| | function | |", "| --- | --- | --- |"]
    lines += [f"| {word} | {plain(name)} | {plain(told)} |" for word, name, told in rows]
    parts = ["\n".join(lines)]
    for each in verdicts:
        over = [(broken.budget.text, broken.found) for broken in each.broken]
        parts += [f"### {plain(each.name)}"] if not each.passed else []
        parts += [table(("over budget", "there is"), over)] if over else []
        parts += [diff_to_markdown(each.changes).rstrip()] if each.changes is not None and each.differs else []
    return "\n\n".join(parts) + "\n"


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
