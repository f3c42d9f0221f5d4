"""What stands in place of a stage's text while there is none: how far the capture is, or why it ended."""

from __future__ import annotations

from textual.content import Content

from ..inspector.capture.model import PHASES, Capture, Failure
from ..inspector.units import format_seconds
from .pieces import data


def notice(capture: Capture) -> Content:
    """The phases, done and to come; or the failure with all that is known of it."""
    if capture.failure is not None:
        return failure_content(capture.failure)
    if capture.progress is None:
        return Content.styled("This stage was not recorded.", "$aside")
    lines = []
    now = list(PHASES).index(capture.progress.phase)
    for number, (phase, words) in enumerate(PHASES.items()):
        if number < now:
            taken = capture.timings.get(phase)
            done = Content.assemble(("✓ ", "$success"), words)
            lines.append(done if taken is None else Content.assemble(done, (f"  {format_seconds(taken)}", "$aside")))
        else:
            going_on = number == now
            lines.append(Content.styled(f"▸ {words} …" if going_on else f"  {words}", "bold" if going_on else "$aside"))
    return Content("\n").join(lines)


def failure_content(failure: Failure) -> Content:
    """The message, what to do next, and the traceback or the last words."""
    doing = PHASES.get(failure.phase, failure.phase)
    parts = [Content.styled(f"Stopped while {doing}", "bold $error"), data(failure.message, "bold")]
    if failure.hint:
        parts.append(Content.assemble(("hint: ", "bold $warning"), data(failure.hint)))
    if failure.details:
        parts.append(data(failure.details.strip("\n")))
    return Content("\n\n").join(parts)
