"""Changes of communication by each pass of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..capture.model import PassSnapshot
from ..ir.derived import derived
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import Report
from ..report.changes import Fingerprint, PassChange
from .diff import compare_outlines
from .outline import outline


def pass_changes(program: Program) -> tuple[PassChange, ...]:
    """The passes that change communication, in order; none where the passes were not recorded."""
    compiled = program.stage("hlo")
    return () if compiled is None else _pass_changes(compiled, _Recorded(program))


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The passes of a program, which stay the same while the capture grows."""

    program: Program

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Recorded) and self.program.capture.passes is other.program.capture.passes

    def __hash__(self) -> int:
        return len(self.program.capture.passes)


@derived
def _pass_changes(compiled: ParsedStage, recorded: _Recorded) -> tuple[PassChange, ...]:
    return tuple(_changes(recorded.program))


def _changes(program: Program) -> Iterator[PassChange]:
    before: Fingerprint | None = None
    for snapshot in program.capture.passes:
        after = _outline(program, snapshot)
        if snapshot.changes and before is not None:
            found = compare_outlines(replace(before, title=f"before {snapshot.name}"), after)
            yield PassChange(snapshot.pipeline, snapshot.name, found)
        before = after


def _outline(program: Program, snapshot: PassSnapshot) -> Fingerprint:
    others = tuple(stage for stage in program.capture.stages if stage.name != "hlo")
    inside = Program(replace(program.capture, stages=(*others, snapshot.stage)), program.stages)
    report = Report(inside, meshes=program.meshes, partitions=program.partitions)
    stage = inside.stages[-1]
    counts = {} if stage.module is None else dict(stage.module.opcode_counts())
    return replace(outline(report, stage), title=f"after {snapshot.name}", insides=(), sizes={}, opcodes=counts)
