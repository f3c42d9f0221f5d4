"""An entry of a table in full: a value, a live result, something that went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from ..inspector.capture.model import Failure, Message, OutputSummary, Value
from ..inspector.report import PlacedMessage
from ..parsers.errors import Problem
from .pieces import data, fact, folded, title
from .selected import Entry
from .stage_notice import failure_content

LONGEST = 20_000
"""Characters of a message, or of values, that are shown."""


def entry_details(entry: Entry, width: int) -> Iterator[Content]:
    """The lines of the inspect pane."""
    match entry:
        case Value(path, type_, spec, donated):
            yield data(path, "bold")
            yield Content("")
            yield from fact("type", type_, width)
            yield from fact("asked", spec or "no sharding asked for", width)
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
            yield from folded(data(text[:LONGEST]), width)
        case Failure():
            yield from folded(failure_content(entry), width)
        case Problem():
            yield Content.styled("could not be read", "bold $error")
            yield Content("")
            yield from folded(data(str(entry)[:LONGEST]), width)


def _statistics(output: OutputSummary, width: int) -> Iterator[Content]:
    for name, number in (("min", output.minimum), ("mean", output.mean), ("max", output.maximum)):
        if number is not None:
            yield from fact(name, f"{number:.6g}", width)
    if output.non_finite:
        yield from fact("broken", Content.styled(f"{output.non_finite:,} not finite", "bold $error"), width)
    if output.values is not None:
        yield Content("")
        yield title("values")
        yield from folded(data(output.values[:LONGEST]), width)
