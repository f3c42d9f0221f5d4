"""How large each stage is and what it consists of."""

from __future__ import annotations

from collections import Counter

from ..parsers.errors import Problem
from ..parsers.hlo import HloModule
from ..parsers.mlir import MlirModule
from .ir.derived import derived
from .ir.jaxpr_text import JaxprText, walk
from .ir.stage import ParsedStage
from .report import StageSummary


@derived
def summarize(stage: ParsedStage) -> StageSummary:
    """Size, distribution of operations, and what could not be read."""
    data = stage.text.data
    problems: tuple[Problem, ...] = ()
    match stage.syntax:
        case HloModule() | MlirModule() as module:
            opcodes = module.opcode_counts()
            problems = module.problems
        case JaxprText(program):
            opcodes = Counter(equation.primitive for _, _, equation in walk(program))
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
        seconds=stage.stage.seconds,
        problems=problems,
    )
