"""Whether all of a module is told of: each byte of a body is of an instruction or of a problem."""

from __future__ import annotations

import re
from bisect import bisect_left

from shardscope.parsers.hlo import HloModule
from shardscope.parsers.source import Span

from ..layouts import HLO_REMARK as REMARK

_BETWEEN = re.compile(rf"(?:\s|{REMARK})*".encode())


def untold(module: HloModule) -> list[str]:
    """The texts in the bodies of computations that no instruction and no problem is of, but for blanks and remarks."""
    data = module.source.data
    problems = [problem.span for problem in module.problems]
    found = []
    for computation in module.computations:
        position, end = computation.body_start, computation.body_end
        inside = problems[bisect_left(problems, Span(position, 0)) : bisect_left(problems, Span(end + 1, 0))]
        told = [*(instruction.span for instruction in computation.instructions), *inside, Span(end, end)]
        for broken in computation.broken:
            first = bisect_left(problems, Span(broken.start, 0))
            if first < len(problems) and not data[broken.end : problems[first].start].strip():
                told.append(broken)
        for place in sorted(told):
            if place.start > position and not _BETWEEN.fullmatch(data, position, place.start):
                found.append(data[position : place.start].decode("utf-8", "replace"))
            position = max(position, place.end)
    return found
