"""A finding in full: what is wrong, the change that fixes it, and how that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from textual.content import Content

from ..inspector.findings.fixes.apply import diff_of
from ..inspector.render.finding_facts import evidence, fix_facts, suppressed_by
from ..inspector.report import Finding, Report
from .painted import severity_style
from .pieces import data, folded, title

MOST_DIFF = 60
"""Lines of a diff that are shown."""

SIGNS = {"+": "$success", "-": "$error", "@": "$aside"}


def finding_details(report: Report, found: Finding, width: int) -> Iterator[Content]:
    """The lines of the inspect pane."""
    yield Content.assemble(
        (f"{found.rule} ", severity_style(found.severity)), (found.slug, "bold"), (f"  {found.confidence}", "$aside")
    )
    known = next((each.by for each in report.suppressed if each.finding == found), None)
    if known is not None:
        yield from folded(data(f"suppressed {suppressed_by(known)}", "$aside"), width)
    yield Content("")
    yield from folded(data(found.message), width)
    yield from _labelled(fix_facts(found), width)
    diff = diff_of(report.program, found.proposal)
    if diff:
        yield Content("")
        yield title("the change")
        for line in diff[:MOST_DIFF]:
            yield from folded(data(line, SIGNS.get(line[:1], "")), width)
        if len(diff) > MOST_DIFF:
            yield Content.styled(f"and {len(diff) - MOST_DIFF} more lines", "$aside")
    yield from _labelled(evidence(found), width)


def _labelled(facts: Iterable[tuple[str, str]], width: int) -> Iterator[Content]:
    for label, text in facts:
        yield Content("")
        yield title(label)
        yield from folded(data(text), width)
