"""Targets side by side, what differs between two lowerings, and the results of checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...check.verdict import Verdict
from ...diff.diff import Diff
from ...diff.headline import headline
from ...diff.targets import Comparison
from ..tables.comparison import budgets_table, collectives_by_cause, diff_tables, summary, targets, word
from .elements import cell, element, facts, text
from .page import page
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
