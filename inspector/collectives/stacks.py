"""Stacks of collectives of which HLO tells no more than a line, from the operations that they come from.

JAX 0.7 writes a file and a line into an instruction's metadata; its StableHLO has functions, columns and callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..ir.stage import ParsedStage
from ..links.operation_ids import spans_of_tags, tags_in
from ..links.source_positions import frames_at
from ..report import Collective, SourcePosition


def with_stacks(collectives: Iterable[Collective], stage: ParsedStage, stablehlo: ParsedStage) -> Iterator[Collective]:
    """The same collectives of HLO; those with a mere line have the stack of their operation, where it agrees."""
    for collective in collectives:
        source = collective.source
        line = source.stack[0] if source.confidence == "exact" and len(source.stack) == 1 else None
        if line is not None and not line.function:
            for span in spans_of_tags(stablehlo, tags_in(stage, collective.span)):
                stack = frames_at(stablehlo, span.end - 1)
                if stack and (stack[0].file, stack[0].line) == (line.file, line.line):
                    source = SourcePosition(stack, "exact")
                    break
        yield collective if source is collective.source else replace(collective, source=source)
