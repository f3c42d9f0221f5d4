"""The collectives, and estimated times with the formulas and the constants that they are made of."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ... import report
from ...report import CollectiveCause
from ...report import cost as estimates
from .references import Reference, Text, shaped
from .shaped import SourceRef
from .sharding import ReasonRef


class TermRef(Reference, table="terms"):
    """A symbol of a formula."""


class Estimate(Struct, frozen=True):
    """The time of one execution, by a model."""

    link: Literal["chip", "torus axis", "torus axes", "node", "network"]
    formula: str
    terms: list[TermRef]


class Figure(Struct, frozen=True):
    """A published figure of a chip."""

    name: str
    value: float
    source: str


class Cost(Struct, frozen=True):
    """One run of the function, per device: what each resource would take alone, and what the schedule takes."""

    chip: str
    flops: int
    bytes: int
    compute: float = field(name="compute_seconds")
    memory: float = field(name="memory_seconds")
    communication: float = field(name="communication_seconds")
    total: float = field(name="seconds")
    waiting: float = field(name="waiting_seconds")
    bound: Literal["compute", "memory", "communication"]
    at_least: bool
    figures: list[Figure]


class EstimateRef(Reference, table="estimates", shape=Estimate):
    """The time of one execution, by a model."""


class GroupsRef(Reference, table="groupings"):
    """The devices that communicate with each other."""


class PairsRef(Reference, table="pairings"):
    """The sender and receiver of each transfer."""


def cost_of(found: estimates.FunctionCost) -> Cost:
    """The cost of a function in its JSON shape."""
    return shaped(Cost, found, figures=[Figure(name, it.value, it.source) for name, it in found.figures])


class Cause(Struct, frozen=True):
    """The cause of a collective that the partitioner inserted for one operation; see docs/report-json.md."""

    effect: Literal["sum", "reshard", "move", "own"]
    operation: Text
    rule: str | None
    place: SourceRef = field(name="source")
    value: str
    before: Text | None
    after: Text | None
    needed: bool
    confidence: Literal["exact", "name", "shape", "none"]
    origins: list[ReasonRef]
    against: list[ReasonRef]


class Part(Struct, frozen=True):
    """One of several collectives that the compiler has combined."""

    type: Text
    op_name: str | None
    origin: report.Origin
    direction: report.Pass = field(name="pass")
    module: list[str]
    argument: str | None
    source: SourceRef


class Collective(Struct, frozen=True):
    """One collective of one stage. `groups` and `pairs` are partition numbers; see docs/report-json.md.

    `estimated_seconds` is of one execution on the target, by the model in docs/cost.md; null where there is none.
    """

    stage: str
    kind: report.Kind
    name: str
    computation: str
    axes: list[Text] | None
    groups: GroupsRef
    pairs: PairsRef | None
    operand_types: list[Text]
    result_types: list[Text]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    most_executions: int | None
    estimated_seconds: float | None
    estimate: EstimateRef | None
    loops: list[str]
    is_async: bool = field(name="async")
    origin: report.Origin
    direction: report.Pass = field(name="pass")
    reduction: str | None
    channel_id: int | None
    fused_form: str | None
    op_name: str | None
    module: list[str]
    argument: str | None
    source: SourceRef
    parts: list[Part]
    omitted_parts: int | None
    causes: list[Cause]
    omitted_causes: int | None
    widened: list[tuple[str, str]]
    cpu_call: str


class Uncounted(Struct, frozen=True):
    """Communication, certain or possible (`unknown`), without a collective: no total has its bytes.

    A kernel, or a custom call, by its `name`; `type` is that of a value that is copied to another device. `pairs` are
    the partitions that may copy or signal, each with the one that it reaches, `axes` those along which they differ.
    `count` are the operations of the program that are alike in all of this, however often each is executed.
    """

    name: str
    does: Literal["copy", "signal", "host", "unknown"]
    type: Text | None
    source: SourceRef
    axes: list[Text] | None = None
    pairs: list[tuple[int, int]] = []
    count: int = 1


MAX_CAUSES = 1
"""Causes of one collective, merged from several, without the section on collectives."""


def collective_of(collective: report.Collective, found: report.Report, *, in_full: bool) -> Collective:
    """A collective in its JSON shape."""
    causes = found.on_demand.causes(collective)
    shown = causes if in_full else causes[:MAX_CAUSES]
    return shaped(
        Collective,
        collective,
        parts=collective.parts if in_full else (),
        omitted_parts=None if in_full else len(collective.parts) or None,
        estimated_seconds=None if collective.estimate is None else collective.estimate.seconds,
        causes=[_cause(cause, found, in_full=in_full) for cause in shown],
        omitted_causes=len(causes) - len(shown) or None,
        pairs=collective.pairs or None,
    )


def _cause(cause: CollectiveCause, found: report.Report, *, in_full: bool) -> Cause:
    origins, against = (
        found.on_demand.reasons(axes, None) for axes in (cause.origins, cause.against if in_full else ())
    )
    return shaped(Cause, cause, value=str(cause.moved or ""), origins=origins, against=against)
