"""What went wrong, what the compiler said, and what could not be read."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...capture.model import PHASES
from ...report import Report
from .pieces import data, left_out, section

MOST = 8
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
    for placed in said[:MOST]:
        message = placed.message
        text = message.text if len(message.text) <= LONGEST else f"{message.text[:LONGEST]}…"
        about = ", ".join(filter(None, (placed.source.text(), placed.about)))
        places = "; ".join(filter(None, (about, message.location)))
        lines.append(data(f"{message.level}{f' ({places})' if places else ''}: ", "bold").append_text(data(text)))
    return section("Messages", [*lines, *left_out(len(said) - MOST, "message")])


def unreadable(report: Report) -> RenderableType | None:
    """What could not be read, each with its excerpt."""
    found = [problem for stage in report.stages for problem in stage.problems]
    damage = [data(f"the rest of the file: {report.capture.damage}")] if report.capture.damage else []
    if not found and not damage:
        return None
    return section(
        "Could not be read",
        [*damage, *(data(str(problem)) for problem in found[:MOST]), *left_out(len(found) - MOST, "")],
    )
