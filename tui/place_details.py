"""A line in full: its text, the stack that it comes from, and the collectives that belong to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content
from textual.style import Style

from ..inspector.collectives.spelled import axes_text, kind_text
from ..inspector.report import Collective, Confidence, file_and_line
from ..inspector.selection.selection import Linked, SourceLine, StagePlace
from ..parsers.source import Frame
from .painted import data, folded, title
from .stage_pane import LABELS

LONGEST = 1200
"""Characters of a line that are shown."""

MOST_FRAMES = 16
MOST_COLLECTIVES = 8

HOW: dict[Confidence, str] = {
    "exact": "",
    "name": "found through a name",
    "shape": "found through types and neighbours",
    "none": "not known",
}


def place_details(linked: Linked, text: str, width: int) -> Iterator[Content]:
    """What stands at a place that is no collective; `text` is its line."""
    match linked.place:
        case SourceLine(file, line):
            yield data(file_and_line(file, line), "bold")
        case StagePlace(stage):
            yield Content.styled(f"a line of {LABELS.get(stage, stage)}", "bold")
    yield from line_text(text, width)
    if isinstance(linked.place, StagePlace):
        yield Content("")
        yield from frames(linked.stack, "exact" if linked.stack else "none", width)
    if linked.collectives:
        yield Content("")
        yield title("collectives of this line")
        for collective in linked.collectives[:MOST_COLLECTIVES]:
            yield from folded(_collective(collective), width)
        if (more := len(linked.collectives) - MOST_COLLECTIVES) > 0:
            yield Content.styled(f"and {more} more", "$aside")


def line_text(text: str, width: int) -> Iterator[Content]:
    """A line of code, broken to the width."""
    shown = text.strip()[:LONGEST]
    yield Content("")
    yield from folded(data(f"{shown}{'…' if len(text.strip()) > LONGEST else ''}", "$text-muted"), width)


def frames(stack: Sequence[Frame], confidence: Confidence, width: int) -> Iterator[Content]:
    """The stack, innermost first; a click on a frame shows its file."""
    how = f"  {HOW[confidence]}" if HOW[confidence] else ""
    yield Content.assemble(("from", "bold $text-muted"), (how, "$warning"))
    for number, frame in enumerate(stack[:MOST_FRAMES]):
        link = Style.from_meta({"@click": f"screen.show_frame({number})"})
        place = data(file_and_line(frame.file, frame.line)).stylize(link)
        line = Content.assemble((" " if number else "▸", "$primary"), " ", place, " ", data(frame.function, "$aside"))
        yield line.truncate(width, ellipsis=True)
    if len(stack) > MOST_FRAMES:
        yield Content.styled(f"  {len(stack) - MOST_FRAMES} more", "$aside")


def _collective(collective: Collective) -> Content:
    stage = LABELS.get(collective.stage, collective.stage)
    return Content.assemble(data(f"{kind_text(collective)} {axes_text(collective)}"), (f"  {stage}", "$aside"))
