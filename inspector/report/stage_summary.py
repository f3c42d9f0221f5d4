"""The size and the contents of a stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import field

from ...parsers.errors import Problem
from ...parsers.record import Record
from ..capture.model import Dialect
from ..ir.derived import derived
from ..ir.stage import ParsedStage


class StageSummary(Record, frozen=True):
    """The size of one stage, how its operations are distributed, and what could not be read in it.

    `collective_counts` are by kind.
    """

    name: str
    dialect: Dialect
    bytes: int
    lines: int
    instructions: int
    opcodes: dict[str, int]
    seconds: float | None
    problems: tuple[Problem, ...] = ()
    collective_counts: Mapping[str, int] = field(default_factory=dict)


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
