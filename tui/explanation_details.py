"""Why a function does not trace: the story, and the changes that fix it."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from ..inspector.findings.fixes.apply import diff_of
from ..inspector.render.explanation_words import fixes_shown, verdict
from ..inspector.report import Report
from .finding_details import SIGNS
from .pieces import data, folded, title


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
