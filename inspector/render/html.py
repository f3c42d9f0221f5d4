"""Reports, comparisons, diffs and the results of checks as one HTML file each: findings first, then the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ...parsers.source import Frame
from ..capture.model import PHASES
from ..check.verdict import Verdict
from ..diff.diff import Diff
from ..diff.headline import headline
from ..diff.targets import Comparison
from ..report import Finding, Report
from .finding_facts import fixes_shown, verdict, where
from .overview import attention, in_order, nothing_sent, resources_text, subject_text
from .printable import printable
from .table import Cell, Column, Detail, Role, Table, pieces, plain_text
from .tables import TABLES
from .tables.comparison import budgets_table, collectives_by_cause, diff_tables, summary, targets, word
from .tables.findings import ROLES

CLASSES: dict[Role, str] = {
    "strong": "strong",
    "aside": "aside",
    "good": "good",
    "warning": "warning",
    "error": "error",
    "added": "good",
    "removed": "error",
    "changed": "warning",
    "axis": "axis",
}

MAX_ROWS = 500
"""Rows of a table that says nothing of how many."""

STYLE = """
.shardscope { color-scheme: light dark; --text: #1d232b; --back: #fbfbf9; --aside: #5a6472; --line: #d9dad6;
  --raised: #f1f1ee; --good: #1c7a35; --warning: #8a5a00; --error: #b3263a; --axis: #0a5fb4;
  color: var(--text); background: var(--back); font: 15px/1.5 system-ui, sans-serif; padding: 1em;
  overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .shardscope { --text: #d5dbe3; --back: #10141a; --aside: #8d98a7;
  --line: #2a323c; --raised: #1a2029; --good: #7ccf8a; --warning: #e6b450; --error: #f47f7f; --axis: #6cb6ff; } }
.shardscope h1 { font-size: 1.25em; } .shardscope h2 { font-size: 1.05em; margin: 1.6em 0 .4em; }
.shardscope .scroll { overflow-x: auto; }
.shardscope table { border-collapse: collapse; font-size: .9em; background: none; }
.shardscope th, .shardscope td { text-align: left; vertical-align: top; padding: .2em .7em .2em 0; color: inherit;
  border-bottom: 1px solid var(--line); white-space: pre-line; overflow-wrap: normal; background: none; }
.shardscope th { color: var(--aside); font-weight: normal; }
.shardscope .right { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.shardscope td, .shardscope pre, .shardscope dd { font-family: ui-monospace, Menlo, Consolas, monospace; }
.shardscope pre { background: var(--raised); color: inherit; padding: .5em .7em; overflow-x: auto; font-size: .85em; }
.shardscope pre span { display: block; min-height: 1lh; }
.shardscope article { border-left: 3px solid var(--line); padding-left: .8em; margin: 1em 0; }
.shardscope dl { display: grid; grid-template-columns: max-content 1fr; gap: .1em .8em; font-size: .9em; }
.shardscope dt { color: var(--aside); } .shardscope dd { margin: 0; }
.shardscope .strong { font-weight: bold; } .shardscope .aside { color: var(--aside); }
.shardscope .good { color: var(--good); } .shardscope .warning { color: var(--warning); }
.shardscope .error { color: var(--error); font-weight: bold; } .shardscope .axis { color: var(--axis); }
.shardscope .here { background: var(--line); }
@media (max-width: 40em) { .shardscope { padding: .6em; } .shardscope dl { grid-template-columns: 1fr; } }
"""


def text(value: str) -> str:
    """Text between tags, or in quotes: no markup, no control characters, no change of direction."""
    return escape(printable(value), quote=True)


def element(name: str, inside: str, style: str = "") -> str:
    """An element of HTML that is safe already; the class is one of ours."""
    return f'<{name} class="{style}">{inside}</{name}>' if style else f"<{name}>{inside}</{name}>"


def page(title: str, parts: Iterable[str]) -> str:
    """A file that needs nothing from elsewhere."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text(title)}</title>\n<style>body {{ margin: 0; }}</style>\n</head>\n<body>\n"
        f"{fragment(parts)}</body>\n</html>\n"
    )


def fragment(parts: Iterable[str]) -> str:
    """The same to be put into a page of someone else's."""
    inside = "\n".join(parts)
    return f'<div class="shardscope">\n<style>{STYLE}</style>\n{inside}\n</div>\n'


def cell(value: Cell) -> str:
    """The pieces, each in its role."""
    return "".join(
        element("span", text(piece.text), CLASSES[piece.role]) if piece.role else text(piece.text)
        for piece in pieces(value)
    )


def table_section(table: Table) -> str:
    """The heading and what is under it; empty for a table that has neither rows nor a heading."""
    columns, rows = table.for_document()
    if not rows and not table.heading:
        return ""
    parts = [element("h2", text(table.heading))] if table.heading else []
    parts += [element("p", cell(line)) for line in table.above]
    if rows:
        shown = rows[: table.most or MAX_ROWS]
        parts.append(element("div", _grid(columns, [row.cells for row in shown]), "scroll"))
        if (more := len(rows) - len(shown)) > 0:
            parts.append(element("p", f"and {more:,} more", "aside"))
    elif table.empty_text:
        parts.append(element("p", text(table.empty_text)))
    if notes := [cell(note) for note in table.notes()]:
        parts.append(element("p", "<br>\n".join(notes)))
    return element("section", "\n".join(parts))


def _grid(columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> str:
    styles = ["right" if column.align == "right" else "" for column in columns]
    titles = [element("th", text(column.title), style) for column, style in zip(columns, styles, strict=True)]
    head = element("thead", element("tr", "".join(titles))) if any(column.title for column in columns) else ""
    lines = (
        element("tr", "".join(element("td", cell(each), style) for each, style in zip(row, styles, strict=True)))
        for row in rows
    )
    return element("table", head + element("tbody", "\n".join(lines)))


def code(lines: Iterable[tuple[str, str]]) -> str:
    """Lines of a program or of a diff, each with a class of ours."""
    return element("pre", "".join(element("span", text(line), style) for line, style in lines))


def diff_lines(lines: Iterable[str]) -> str:
    """A unified diff in colours."""
    signs = {"+": "good", "-": "error", "@": "aside"}
    return code((line, signs.get(line[:1], "")) for line in lines)


def facts(labelled: Iterable[tuple[str, str]]) -> str:
    """Labels with texts."""
    pairs = "".join(element("dt", text(label)) + element("dd", text(value)) for label, value in labelled if value)
    return element("dl", pairs) if pairs else ""


AROUND = 2
"""Lines before and after the one that an excerpt is of."""


def report_page(report: Report) -> str:
    """One report."""
    return page(subject_text(report), _parts(report))


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
    yield element("h1", text(subject_text(report)))
    yield element("p", text(resources_text(report)))
    yield from _failure(report)
    state = [*map(cell, attention(report)), *map(text, filter(None, (nothing_sent(report), in_order(report))))]
    yield element("p", "<br>\n".join(state)) if state else ""
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
        yield element("h2", text(f"Why tracing fails: {found.title}"))
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
