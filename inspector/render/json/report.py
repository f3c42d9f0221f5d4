"""The whole document of `shardscope.report/1`, and several of them side by side as `shardscope.comparison/1`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ... import report
from ...diff import targets
from ...shardings.conflicts import conflicts
from ...shardings.table import values
from .collective import Collective, Cost, Uncounted, collective_of, cost_of
from .execution import Execution, Memory, execution_of, memory_of
from .finding import Explanation, Finding, Suppressed, explanation_of, finding_of, suppressed_of
from .shaped import encoded, shaped
from .sharding import Conflict, Sharding, Value, Variance, conflict_of, sharding_of
from .subject import Failure, Message, Stage, Subject, message_of, stage_of


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
        subject=capture.subject,
        complete=capture.complete,
        stages=list(map(stage_of, found.stages)),
        collectives=[collective_of(collective, found.program) for collective in found.collectives],
        uncounted=[shaped(Uncounted, each) for each in found.uncounted],
        arguments=capture.arguments,
        outputs=capture.outputs,
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


class Row(Struct, frozen=True):
    """What each target does for one cause: for each report, in their order, positions in its `collectives`."""

    source: str
    axes: str
    cells: list[list[int]]
    direction: Literal["forward", "backward", "recompute", "unknown"] = field(name="pass")


class Comparison(Struct, frozen=True):
    """The reports of one function on several targets."""

    schema: Literal["shardscope.comparison/1"]
    targets: list[str]
    rows: list[Row]
    reports: list[Report]


def comparison_to_json(comparison: targets.Comparison, indent: int = 2) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    positions = [{c: n for n, c in enumerate(report.collectives)} for report in comparison.reports]
    document = Comparison(
        schema="shardscope.comparison/1",
        targets=list(comparison.targets),
        rows=[
            Row(
                row.cause.source,
                row.cause.axes,
                [[known[c] for c in cell] for known, cell in zip(positions, row.cells, strict=True)],
                row.cause.direction,
            )
            for row in comparison.rows
        ],
        reports=list(map(report_of, comparison.reports)),
    )
    return encoded(document, indent)
