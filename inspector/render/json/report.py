"""The whole document of `shardscope.report/1`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ... import report
from ...shardings.conflicts import conflicts
from ...shardings.table import values
from .collective import Collective, Uncounted, collective_of
from .cost import Cost, cost_of
from .execution import Execution, Memory, execution_of, memory_of
from .finding import Explanation, Finding, Suppressed, explanation_of, finding_of, suppressed_of
from .shaped import shaped
from .sharding import Conflict, Sharding, conflict_of, sharding_of
from .stage import Stage, stage_of
from .subject import Failure, Message, Subject, message_of, subject_of
from .value import Value, Variance, value_of


class Report(Struct, frozen=True):
    """The document. Sizes are bytes per device and execution, times are seconds, what is not known is null."""

    schema: Literal["shardscope.report/1"]
    subject: Subject | None
    complete: bool
    stages: list[Stage]
    collectives: list[Collective]
    uncounted: list[Uncounted]
    arguments: list[Value]
    outputs: list[Value]
    shardings: list[Sharding]
    conflicts: list[Conflict]
    variance: list[Variance]
    findings: list[Finding]
    suppressed: list[Suppressed]
    execution: Execution
    memory: Memory | None
    cost: Cost | None
    messages: list[Message]
    failure: Failure | None
    explanation: Explanation | None
    timings: dict[str, float]


def report_of(found: report.Report) -> Report:
    """A Report in its JSON shape."""
    capture = found.capture
    return shaped(
        Report,
        found,
        schema="shardscope.report/1",
        subject=None if capture.subject is None else subject_of(capture.subject),
        complete=capture.complete,
        stages=list(map(stage_of, found.stages)),
        collectives=[collective_of(collective, found.program) for collective in found.collectives],
        uncounted=[shaped(Uncounted, each) for each in found.uncounted],
        arguments=list(map(value_of, capture.arguments)),
        outputs=list(map(value_of, capture.outputs)),
        shardings=[sharding_of(value, found.program) for value in (*found.shardings, *values(found.program))],
        conflicts=list(map(conflict_of, conflicts(found.program))),
        findings=list(map(finding_of, found.findings)),
        suppressed=list(map(suppressed_of, found.suppressed)),
        execution=execution_of(found),
        memory=None if capture.memory is None else memory_of(capture.memory, found.peak),
        cost=None if found.cost is None else cost_of(found.cost),
        messages=list(map(message_of, found.messages)),
        failure=capture.failure,
        explanation=None if found.explanation is None else explanation_of(found.explanation),
        timings=capture.timings,
    )
