"""The positions in a stage's text that come from a line of the user's source, and the reverse.

A place belongs to a line when the line is in the call stack that the compiler recorded for it. Of the places of a line,
those whose innermost frame it is come first: the others are in functions that the line calls.
"""

from __future__ import annotations

from ...parsers.source import Frame, Span
from ..ir.derived import derived
from ..ir.stage import ParsedStage


def frames_at(stage: ParsedStage, offset: int) -> tuple[Frame, ...]:
    """The call stack of what stands at an offset of the shown text, innermost first; empty if nothing is known."""
    operation = None if stage.module is None else stage.module.operation_at(offset)
    return () if operation is None else operation.stack


def spans_of(stage: ParsedStage, file: str, line: int) -> tuple[Span, ...]:
    """The lines of the shown text that come from a source line, those closest to it first."""
    return _index(stage).get((file, line), ())


@derived
def _index(stage: ParsedStage) -> dict[tuple[str, int], tuple[Span, ...]]:
    nearest: dict[tuple[str, int], dict[Span, int]] = {}
    for operation in () if stage.module is None else stage.module.located():
        line = stage.text.line_around(operation.span.start)
        for depth, frame in enumerate(operation.stack):
            spans = nearest.setdefault((frame.file, frame.line), {})
            spans[line] = min(depth, spans.get(line, depth))
    return {place: tuple(sorted(spans, key=lambda s: (spans[s], s))) for place, spans in nearest.items()}
