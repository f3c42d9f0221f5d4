"""The first lines of a text report: what was captured, why that ended early, and why it fails."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ...capture.model import PHASES
from ...experiments.edited import diff_of
from ...ir.program import Program
from ...report import Explanation, Fix, Report
from ..finding_facts import fixes_shown, verdict
from ..overview import is_refused, nothing_sent, resources_text, subject_text
from .tables import code_lines, data, left_out, section

MAX_TRACEBACK = 24
"""Lines of a traceback, the last ones, in the short report."""


def subject_lines(report: Report) -> Iterator[RenderableType]:
    """The subject of the capture, and the resources of a step."""
    subject = data(subject_text(report))
    subject.stylize("bold", 0, len(subject.plain.partition(" · ")[0]))
    yield subject
    sent, resources = nothing_sent(report), resources_text(report)
    if sent or resources:
        yield data(" ".join(filter(None, (sent, resources[:1].upper() + resources[1:] if sent else resources))))


def failure(report: Report, *, in_full: bool = True, below_subject: bool = True) -> RenderableType | None:
    """The reason why the capture ended early, and what to do next, below the subject's line or another."""
    why = report.capture.failure
    if why is None:
        return None
    details = why.details.rstrip("\n").splitlines()
    # A traceback ends with the message.
    is_said = why.message in why.details or (below_subject and is_refused(report.capture))
    lines: list[RenderableType] = [] if is_said else [data(why.message, "red")]
    shown = details if in_full else details[-MAX_TRACEBACK:]
    if len(shown) < len(details):
        lines += left_out(len(details) - len(shown), "line", " above; --details messages")
    lines += [data(line) for line in shown]
    if why.hint:
        lines.append(Text.assemble(("hint: ", "bold"), data(why.hint)))
    if report.capture.subject is None and not report.capture.stages:
        return Group(*lines) if lines else None
    return section(f"Stopped while {PHASES[why.phase]}", lines)


def explanation(report: Report) -> RenderableType | None:
    """The story step by step, and each fix with what came of trying it."""
    return None if report.explanation is None else explained(report.explanation, report.program)


def explained(found: Explanation, program: Program) -> RenderableType:
    """An explanation as a section; `program` has the files that its fixes edit."""
    place = found.where.text()
    lines: list[RenderableType] = [data(f"{found.title}{f'   {place}' if place else ''}", "bold")]
    for number, step in enumerate(found.steps, 1):
        place = step.source.text()
        lines.append(data(f"  {number}. {step.what}{f'   {place}' if place else ''}"))
    for fix in fixes_shown(found):
        lines += _fix(fix, program)
    return section("Why it fails", lines)


def _fix(fix: Fix, program: Program) -> list[RenderableType]:
    style = "dim" if fix.experiment is None else "green" if fix.helps else "yellow"
    head = Text.assemble("  ", (f"{verdict(fix)}: ", f"bold {style}"), data(fix.title))
    return [head, *(Text("    ").append_text(line) for line in code_lines("\n".join(diff_of(program, fix))))]
