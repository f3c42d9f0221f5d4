"""Which places of a stage's text come from which line of the user's source, in both directions.

A place belongs to a line when the line is in the call stack that the compiler recorded for it. Of the places of a line,
those whose innermost frame it is come first: the others are in functions that the line calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...parsers.errors import Problem
from ...parsers.hlo import HloModule
from ...parsers.mlir import MlirModule
from ...parsers.mlir import frames as location_frames
from ...parsers.source import Frame, Span
from ..ir.derived import derived
from ..ir.jaxpr_text import JaxprText
from ..ir.stage import ParsedStage

_FRAME_ID = re.compile(rb"\bstack_frame_id=(\d++)")
_FRAME = re.compile(rb'\bsource_file="[^"\n]*+"')


def frames_at(stage: ParsedStage, offset: int) -> tuple[Frame, ...]:
    """The call stack of what stands at an offset of the shown text, innermost first; empty if nothing is known."""
    match stage.syntax:
        case HloModule() as module:
            instruction = module.instruction_at(offset)
            return () if instruction is None else instruction.frames
        case MlirModule() as module:
            operation = module.operation_at(offset)
            return () if operation is None else location_frames(operation.location)
        case JaxprText() as text:
            around = [place for place in text.equations if place.span.start <= offset < place.span.end]
            return text.stack(around[-1].equation) if around else ()
        case Problem():
            return ()


def spans_of(stage: ParsedStage, file: str, line: int) -> tuple[Span, ...]:
    """The lines of the shown text that come from a source line, those closest to it first."""
    return _index(stage).get((file, line), ())


@derived
def _index(stage: ParsedStage) -> dict[tuple[str, int], tuple[Span, ...]]:
    nearest: dict[tuple[str, int], dict[Span, int]] = {}
    for span, stack in _stacks(stage):
        for depth, frame in enumerate(stack):
            spans = nearest.setdefault((frame.file, frame.line), {})
            spans[span] = min(depth, spans.get(span, depth))
    return {place: tuple(sorted(spans, key=lambda s: (spans[s], s))) for place, spans in nearest.items()}


def _stacks(stage: ParsedStage) -> Iterator[tuple[Span, tuple[Frame, ...]]]:
    """Each line of the shown text that has a call stack, with it."""
    source = stage.text
    match stage.syntax:
        case HloModule() as module:
            for match in _FRAME_ID.finditer(source.data):
                yield source.line_around(match.start()), module.frames(int(match[1]))
            for match in _FRAME.finditer(source.data):
                yield source.line_around(match.start()), frames_at(stage, match.start())
        case MlirModule() as module:
            for operation in module.walk():
                # Short forms imply operations that stand in no text.
                if operation.text is module.text and (stack := location_frames(operation.location)):
                    yield source.line_around(operation.span.start), stack
        case JaxprText() as text:
            for place in text.equations:
                yield source.line_around(place.span.start), text.stack(place.equation)
        case Problem():
            return
