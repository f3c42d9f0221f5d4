"""An entry of a table in full: a value, a live result, a finding, something that went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from textual.content import Content

from ..inspector.capture.model import Failure, Message, OutputSummary, Value
from ..inspector.findings.fixes.apply import diff_of
from ..inspector.render.finding_facts import evidence, fix_facts, fixes_shown, suppressed_by, verdict
from ..inspector.report import Finding, PlacedMessage, Report
from ..inspector.selection.selection import Place
from ..parsers.errors import Problem
from .painted import data, fact, folded, severity_style, title
from .stage_pane import failure_content

Entry = Value | OutputSummary | PlacedMessage | Failure | Problem

Selected = Place | Entry


MAX_DIFF_LINES = 60
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
        for line in diff[:MAX_DIFF_LINES]:
            yield from folded(data(line, SIGNS.get(line[:1], "")), width)
        if len(diff) > MAX_DIFF_LINES:
            yield Content.styled(f"and {len(diff) - MAX_DIFF_LINES} more lines", "$aside")
    yield from _labelled(evidence(found), width)


def _labelled(facts: Iterable[tuple[str, str]], width: int) -> Iterator[Content]:
    for label, text in facts:
        yield Content("")
        yield title(label)
        yield from folded(data(text), width)


def explanation_details(report: Report, width: int) -> Iterator[Content]:
    """The lines of the inspect pane; none where nothing is known."""
    found = report.explanation
    if found is None:
        return
    yield title("why it does not trace")
    yield from folded(data(found.title), width)
    for number, step in enumerate(found.steps, 1):
        yield from folded(data(f"{number}. {step.what}   {step.source.text()}".rstrip()), width)
    for fix in fixes_shown(found):
        yield Content("")
        yield from folded(data(verdict(fix), "bold $success" if fix.verified else "$warning"), width)
        yield from folded(data(fix.title), width)
        for line in diff_of(report.program, fix)[2:]:
            yield from folded(data(line, SIGNS.get(line[:1], "")), width)
    yield Content("")


MAX_CHARACTERS = 20_000
"""Characters of a message, or of values, that are shown."""


def entry_details(entry: Entry, width: int) -> Iterator[Content]:
    """The lines of the inspect pane."""
    match entry:
        case Value(path, type_, spec, donated):
            yield data(path, "bold")
            yield Content("")
            yield from fact("type", type_, width)
            yield from fact("request", spec or "unconstrained", width)
            yield from fact("donated", "yes" if donated else "", width)
        case OutputSummary(path, type_, spec):
            yield data(path, "bold")
            yield Content("")
            yield from fact("type", type_, width)
            yield from fact("sharding", spec or "", width)
            yield from _statistics(entry, width)
        case PlacedMessage(Message(level, text, phase, location), about, source):
            yield Content.styled(level, {"error": "bold $error", "warning": "bold $warning"}.get(level, "bold"))
            yield from fact("while", phase, width)
            yield from fact("said at", location or "", width)
            yield from fact("about", about or "", width)
            yield from fact("line", source.text(), width)
            yield Content("")
            yield from folded(data(text[:MAX_CHARACTERS]), width)
        case Failure():
            yield from folded(failure_content(entry), width)
        case Problem():
            yield Content.styled("could not be read", "bold $error")
            yield Content("")
            yield from folded(data(str(entry)[:MAX_CHARACTERS]), width)


def _statistics(output: OutputSummary, width: int) -> Iterator[Content]:
    for name, number in (("min", output.minimum), ("mean", output.mean), ("max", output.maximum)):
        if number is not None:
            yield from fact(name, f"{number:.6g}", width)
    if output.non_finite:
        yield from fact("broken", Content.styled(f"{output.non_finite:,} not finite", "bold $error"), width)
    if output.values is not None:
        yield Content("")
        yield title("values")
        yield from folded(data(output.values[:MAX_CHARACTERS]), width)
