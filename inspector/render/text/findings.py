"""What went wrong, what is wrong, and what fixes it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...capture.model import PHASES
from ...findings.fixes.apply import diff_of
from ...report import Finding, Fix, Report, Suppressed
from ..finding_facts import counted, facts, fixes_shown, suppressed_by, verdict, where
from ..table import plain_text
from ..tables.collectives import causes as causes_table
from .tables import data, left_out, section

MOST = 20
"""Findings that are shown."""

MOST_DIFF = 16
"""Lines of one finding's diff."""

STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
SIGNS = {"+": "green", "-": "red", "@": "dim"}


def findings(report: Report) -> RenderableType | None:
    """Each with its place, its evidence and its fix; of those that are suppressed, by what."""
    found, known = report.findings, report.suppressed
    if not found and not known:
        return None
    lines = [line for each in found[:MOST] for line in _lines(each, report)]
    lines += left_out(len(found) - MOST, "finding")
    lines += [_suppressed(each) for each in known[:MOST]]
    return section(f"Findings: {counted(report)}", [*lines, *left_out(len(known) - MOST, "", " that are suppressed")])


def _lines(found: Finding, report: Report) -> list[RenderableType]:
    head = Text.assemble(
        (f"{found.rule} {found.slug}", STYLES[found.severity]), data(f"  {found.confidence}  {where(found)}", "bold")
    )
    lines = [("", found.message), *facts(found)]
    diff = diff_of(report.program, found.proposal)[2:]  # without the names of the file, which stand above
    return [
        head,
        *(Text.assemble("  ", (f"{name}: " if name else "", "bold"), data(text)) for name, text in lines),
        *(data(f"    {line}", SIGNS.get(line[:1], "")) for line in diff[:MOST_DIFF]),
        *left_out(len(diff) - MOST_DIFF, "line", " of the change"),
    ]


def _suppressed(known: Suppressed) -> RenderableType:
    found = known.finding
    return data(f"{found.rule} {found.slug}  {where(found)}  suppressed {suppressed_by(known.by)}", "dim")


def explanation(report: Report) -> RenderableType | None:
    """The story step by step, and each change with what came of trying it."""
    found = report.explanation
    if found is None:
        return None
    lines: list[RenderableType] = [data(found.title, "bold")]
    for number, step in enumerate(found.steps, 1):
        place = step.source.text()
        lines.append(data(f"  {number}. {step.what}{f'   {place}' if place else ''}"))
    for fix in fixes_shown(found):
        lines += _fix(fix, report)
    return section("Why it does not trace", lines)


def _fix(fix: Fix, report: Report) -> list[RenderableType]:
    style = "dim" if fix.trial is None else "green" if fix.verified else "yellow"
    head = Text.assemble("  ", (f"{verdict(fix)}: ", f"bold {style}"), data(fix.title))
    diff = diff_of(report.program, fix)[2:]
    return [head, *(data(f"    {line}", SIGNS.get(line[:1], "")) for line in diff)]


MAX_MESSAGES = 8
"""Messages that are shown."""

LONGEST = 600
"""Characters of one message."""


def failure(report: Report) -> RenderableType | None:
    """Why the capture ended early, and what to do next."""
    why = report.capture.failure
    if why is None:
        return None
    lines: list[RenderableType] = [data(why.message, "red")]
    if why.details:
        lines.append(data(why.details.rstrip("\n")))
    if why.hint:
        lines.append(Text.assemble(("hint: ", "bold"), data(why.hint)))
    return section(f"Stopped while {PHASES[why.phase]}", lines)


def messages(report: Report) -> RenderableType | None:
    """The first of them."""
    said = report.messages
    if not said:
        return None
    lines: list[RenderableType] = []
    for placed in said[:MAX_MESSAGES]:
        message = placed.message
        text = message.text if len(message.text) <= LONGEST else f"{message.text[:LONGEST]}…"
        about = ", ".join(filter(None, (placed.source.text(), placed.about)))
        places = "; ".join(filter(None, (about, message.location)))
        lines.append(data(f"{message.level}{f' ({places})' if places else ''}: ", "bold").append_text(data(text)))
    return section("Messages", [*lines, *left_out(len(said) - MAX_MESSAGES, "message")])


def unreadable(report: Report) -> RenderableType | None:
    """What could not be read, each with its excerpt."""
    found = [problem for stage in report.stages for problem in stage.problems]
    damage = [data(f"the rest of the file: {report.capture.damage}")] if report.capture.damage else []
    if not found and not damage:
        return None
    return section(
        "Could not be read",
        [*damage, *(data(str(problem)) for problem in found[:MAX_MESSAGES]), *left_out(len(found) - MAX_MESSAGES, "")],
    )


def causes(report: Report) -> RenderableType | None:
    """Each with the collectives that it has."""
    table = causes_table(report)
    lines: list[RenderableType] = []
    for row in table.rows[: table.most]:
        lines.append(data(plain_text(row.cells[0])))
        lines += [data(f"  {detail.text}", "dim") for detail in table.details(row.value)]
    more = len(table.rows) - (table.most or 0)
    return section(table.heading, [*lines, *left_out(more, table.unit)]) if lines else None
