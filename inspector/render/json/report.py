"""The whole document of `shardscope.report/2`, and several of them side by side as `shardscope.comparison/1`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field, to_builtins

from ... import report
from ...capture.protocol.events import OtherProgram
from ...report import comparison as targets
from ...report.communication import AxisUse
from ...report.cost import Term
from ..renderers import SECTIONS
from .collective import Collective, Cost, Estimate, Uncounted, collective_of, cost_of
from .diff import Change, change_of
from .execution import Execution, Memory, execution_of, memory_of
from .finding import (
    Elsewhere,
    Explanation,
    Finding,
    Suppressed,
    elsewhere_of,
    explanation_of,
    finding_of,
    suppressed_of,
)
from .references import Text, shaped, with_tables
from .shaped import Frame, Source, encoded
from .sharding import Conflict, Sharding, Step, Value, Variance, Why, sharding_of, values_of
from .subject import Failure, Message, Stage, Subject, Validation, stage_of, validation_of

BOUNDARY = ("argument", "output")


class Communication(Struct, frozen=True):
    """Collectives of one kind over the same axes that serve one strategy; `collectives` are positions in the report's.

    `other` is what could not be decided. Bytes and seconds are of one step on each device, `most_bytes` is their upper
    bound where branches decide. `arguments` are what gathers move, `gradients` counts what gradient sync sums.
    """

    strategy: report.Strategy
    kind: report.Kind
    axes: list[Text] | None
    wire_bytes: int | None
    most_bytes: int | None
    seconds: float | None
    collectives: list[int]
    arguments: list[str]
    gradients: int


class PassChange(Struct, frozen=True):
    """A pass of the compiler that changes communication, in its pipeline, and what it changes."""

    pipeline: str
    name: str
    changes: list[Change]


class Report(Struct, frozen=True):
    """The document. Sizes are bytes per device and execution, times are seconds, what is not known is null.

    `details` are the sections that it has in full; see docs/report-json.md. The lists from `frames` on are what the
    rest refers to by position.
    """

    schema: Literal["shardscope.report/2"]
    details: list[str]
    subject: Subject | None
    complete: bool
    stages: list[Stage]
    axes: list[AxisUse]
    communication: list[Communication]
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
    validation: Validation | None
    cost: Cost | None
    messages: list[Message]
    passes: list[PassChange]
    failure: Failure | None
    explanation: Explanation | None
    elsewhere: Elsewhere | None
    timings: dict[str, float]
    other_programs: list[OtherProgram] | UnsetType = UNSET
    frames: list[Frame] = []
    sources: list[Source] = []
    groupings: list[list[list[int]]] = []
    pairings: list[list[tuple[int, int]]] = []
    estimates: list[Estimate] = []
    terms: list[Term] = []
    steps: list[Step] = []
    reasons: list[Why] = []


def report_document(found: report.Report, details: Collection[str] = ()) -> dict[str, Any]:
    """A report as plain data, with the details of the sections that are named."""
    chosen = frozenset(SECTIONS if "all" in details else details)
    return with_tables(_report_of(found, chosen), short=not chosen & {"values", "shardings"})


def _report_of(found: report.Report, details: Collection[str]) -> Report:
    capture = found.capture
    every, explain = "values" in details, bool({"values", "shardings"} & set(details))
    in_full = "collectives" in details
    # Arguments and outputs are listed as such, where they were captured.
    everywhere = explain or not (capture.arguments or capture.outputs)
    listed = [each for each in found.shardings if everywhere or each.role not in BOUNDARY or each.agrees is False]
    listed += found.on_demand.values() if every else ()
    return shaped(
        Report,
        found,
        schema="shardscope.report/2",
        details=sorted(details),
        subject=capture.subject,
        complete=capture.complete,
        stages=[stage_of(each, in_full="stages" in details) for each in found.on_demand.stage_summaries()],
        communication=_communication(found),
        collectives=[collective_of(each, found, in_full=in_full) for each in found.collectives],
        arguments=values_of(capture.arguments, capture),
        outputs=values_of(capture.outputs, capture),
        shardings=[sharding_of(value, found, explain=explain) for value in listed],
        conflicts=found.on_demand.conflicts() if explain else (),
        variance=[each for each in found.variance if every or "variance" in details or each.changes_axes],
        findings=[finding_of(each, in_full="findings" in details) for each in found.findings],
        suppressed=list(map(suppressed_of, found.suppressed)),
        execution=execution_of(found, details),
        memory=None if capture.memory is None else memory_of(capture.memory, found, details),
        validation=None if capture.validation is None else validation_of(capture.validation),
        cost=None if found.cost is None else cost_of(found.cost),
        messages=[shaped(Message, each.message, each) for each in found.messages],
        passes=[
            PassChange(each.pipeline, each.name, list(map(change_of, each.diff.changes)))
            for each in found.on_demand.pass_changes()
        ],
        failure=capture.failure,
        **({"other_programs": capture.others} if capture.others else {}),
        explanation=None if found.explanation is None else explanation_of(found.explanation),
        elsewhere=None if found.elsewhere is None else elsewhere_of(found.elsewhere),
        timings=capture.timings,
    )


def _communication(found: report.Report) -> list[Communication]:
    positions = {id(each): number for number, each in enumerate(found.collectives)}
    return [
        shaped(
            Communication,
            total,
            collectives=[positions[id(each)] for each in total.collectives],
        )
        for total in found.communication
    ]


class Row(Struct, frozen=True):
    """Collectives of each target for one cause: for each report, in order, positions in its `collectives`."""

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


def comparison_to_json(comparison: targets.Comparison, details: Collection[str] = ()) -> bytes:
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
        reports=[],
    )
    reports = [report_document(each, details) for each in comparison.reports]
    return encoded(to_builtins(document) | {"reports": reports})
