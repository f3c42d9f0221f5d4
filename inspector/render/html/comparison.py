"""Targets side by side, what differs between two lowerings, results of checks, traces, and differences of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.program import file_on_disk
from ...report import file_and_line
from ...report.changes import Diff
from ...report.comparison import Comparison
from ...report.traces import Divergence, RankComparison, Side, Trace, ranks_text
from ...report.verdict import Verdict
from ..headline import headline
from ..tables.comparison import budgets_table, collectives_by_cause, diff_tables, summary, targets, word
from ..tables.traces import endings, headline_parts, outcome, programs, ranks_summary, retracings, transfers
from .elements import cell, element, excerpt, facts, page, section, text
from .report import sections
from .tables import table_section


def comparison_page(comparison: Comparison) -> str:
    """The targets side by side, and under that each report."""
    tables = [table_section(targets(comparison)), table_section(collectives_by_cause(comparison))]
    parts = [("", "", part) for part in tables]
    for number, (target, report) in enumerate(zip(comparison.targets, comparison.reports, strict=True), 1):
        prefix = f"t{number}-"
        parts.append((f"{prefix}top", target, ""))
        parts += [("", "", part) for _, _, part in sections(report, prefix)]
    links = [(anchor, name) for anchor, name, _ in parts if name]
    return page(", ".join(comparison.targets), (part for _, _, part in parts), links)


def diff_page(found: Diff) -> str:
    """The differences, headline first."""
    links = [(table.id, table.title) for table in diff_tables(found) if table.rows]
    return page(headline(found), _diff_parts(found), links)


def verdicts_page(verdicts: Sequence[Verdict]) -> str:
    """For each function whether it passed, and all that did not."""
    links = [(f"v{number}", each.name) for number, each in enumerate(verdicts, 1)]
    return page("Checks", (part for number, each in enumerate(verdicts, 1) for part in _verdict(each, number)), links)


def _verdict(each: Verdict, number: int) -> Iterator[str]:
    yield element("h1", f"{cell(word(each))} {text(each.name)}", id=f"v{number}")
    yield element("p", text(summary(each)))
    if each.broken:
        yield table_section(budgets_table(each), f"v{number}-")
    if each.changes is not None and each.differs:
        yield from _diff_parts(each.changes, f"v{number}-")


def _diff_parts(found: Diff, prefix: str = "") -> Iterator[str]:
    yield element("h1", text(headline(found)))
    yield facts([("before", found.before.title), ("after", found.after.title)])
    yield from (table_section(table, prefix) for table in diff_tables(found))


def trace_page(trace: Trace) -> str:
    """The programs, what communicates most first; of several processes, their differences."""
    raised = dict.fromkeys(each.failure.message for each in trace.processes if each.failure is not None)
    hints = dict.fromkeys(each.failure.hint for each in trace.processes if each.failure is not None)
    parts = [
        *(element("p", text(message), "error") for message in raised),
        *(element("p", text(f"hint: {hint}")) for hint in hints if hint),
        _differences(trace.ranks, with_lines=False),
        *_programs(trace),
        _lines(endings(trace)),
    ]
    return _page(trace, parts)


def ranks_page(trace: Trace) -> str:
    """The differences with the lines that they come from, then the programs; the files are as they are on disk."""
    parts = [_differences(trace.ranks, with_lines=True), _lines(ranks_summary(trace)), *_programs(trace)]
    return _page(trace, parts)


def _page(trace: Trace, parts: Sequence[str]) -> str:
    command, *others = headline_parts(trace)
    links = [("differences", "Differences")] if trace.ranks.divergences else []
    links += [(table.id, table.title) for table in (programs(trace), transfers(trace), retracings(trace)) if table.rows]
    head = [element("h1", text(command)), element("p", text(" · ".join(others)))]
    return page(command, [*head, *parts], links)


def _programs(trace: Trace) -> Iterator[str]:
    yield from (table_section(table) for table in (programs(trace), transfers(trace), retracings(trace)))


def _differences(found: RankComparison, *, with_lines: bool) -> str:
    """One article for each difference, with what each group of ranks does."""
    articles = (
        element("article", "\n".join(_divergence(each, with_lines=with_lines)), id=f"difference-{number}")
        for number, each in enumerate(found.divergences, 1)
    )
    heading = outcome(found)
    return section("differences", heading[:1].upper() + heading[1:], "\n".join(articles)) if heading else ""


def _divergence(found: Divergence, *, with_lines: bool) -> Iterator[str]:
    yield element("p", text(found.title), "strong")
    yield facts([(ranks_text(side.ranks), " · ".join(filter(None, (side.text, _place(side))))) for side in found.sides])
    for place in dict.fromkeys(side.place for side in found.sides if side.place is not None) if with_lines else ():
        yield excerpt(file_on_disk(place.file), place.line)


def _place(side: Side) -> str:
    return "" if side.place is None else file_and_line(side.place.file, side.place.line)


def _lines(said: Iterator[str]) -> str:
    return element("p", "<br>\n".join(map(text, said)))
