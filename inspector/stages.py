"""How large each stage is and what it consists of."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from ..parsers.errors import Problem
from ..parsers.hlo import HloModule
from ..parsers.mlir import MlirModule
from .capture.model import Stage
from .ir.jaxpr_text import JaxprText, walk
from .ir.program import read
from .report import StageSummary


@lru_cache(maxsize=64)
def summarize(stage: Stage) -> StageSummary:
    """Size, distribution of operations, and what could not be read."""
    data = stage.source.data
    problems: tuple[Problem, ...] = ()
    match read(stage):
        case HloModule() | MlirModule() as module:
            opcodes = module.opcode_counts()
            problems = module.problems
        case JaxprText(program, source):
            opcodes = Counter(equation.primitive for _, _, equation in walk(program))
            data = source.data
        case Problem() as problem:
            opcodes = {}
            problems = (problem,)
    return StageSummary(
        name=stage.name,
        dialect=stage.dialect,
        bytes=len(data),
        lines=data.count(b"\n") + (not data.endswith(b"\n")),
        instructions=sum(opcodes.values()),
        opcodes=dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))),
        seconds=stage.seconds,
        problems=problems,
    )
