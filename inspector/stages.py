"""How large each stage is and what it consists of."""

from __future__ import annotations

from collections import Counter

from .ir.derived import derived
from .ir.stage import ParsedStage
from .report import StageSummary


@derived
def summarize(stage: ParsedStage) -> StageSummary:
    """Size, distribution of operations, and what could not be read."""
    data = stage.text.data
    opcodes: Counter[str] = Counter()
    for module in stage.modules.values():
        opcodes.update(module.opcode_counts())
    return StageSummary(
        name=stage.name,
        dialect=stage.dialect,
        bytes=len(data),
        lines=data.count(b"\n") + (not data.endswith(b"\n")),
        instructions=sum(opcodes.values()),
        opcodes=dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))),
        seconds=stage.stage.seconds,
        problems=stage.problems,
    )
