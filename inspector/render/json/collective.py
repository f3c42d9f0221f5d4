"""The collectives."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ... import report
from ...ir.program import Program
from ...report import CollectiveCause
from ...shardings.collective_causes import causes_of
from .cost import Estimate, estimate_of
from .shaped import at, shaped
from .sharding import Why, why_of
from .source import Source


class Cause(Struct, frozen=True):
    """What a collective that the partitioner inserted does for one operation; see docs/report-json.md."""

    effect: Literal["sum", "reshard", "move", "own"]
    operation: str
    rule: str | None
    file: str | None
    line: int | None
    value: str
    before: str | None
    after: str | None
    needed: bool
    confidence: Literal["exact", "name", "shape", "none"]
    origins: list[Why]
    against: list[Why]


class Part(Struct, frozen=True):
    """One of several collectives that the compiler has flattened and made one of."""

    type: str
    op_name: str | None
    source: Source


class Collective(Struct, frozen=True):
    """One collective of one stage. `groups` and `pairs` are partition numbers; see docs/report-json.md.

    `estimated_seconds` is of one execution on the target, by the model in docs/cost.md; null where there is none.
    """

    stage: str
    kind: report.Kind
    name: str
    computation: str
    axes: list[str] | None
    groups: list[list[int]]
    pairs: list[tuple[int, int]]
    operand_types: list[str]
    result_types: list[str]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    estimated_seconds: float | None
    estimate: Estimate | None
    loops: list[str]
    is_async: bool = field(name="async")
    origin: Literal["user", "partitioner", "compiler", "unknown"]
    direction: Literal["forward", "backward", "recompute", "unknown"] = field(name="pass")
    reduction: str | None
    channel_id: int | None
    fused_form: str | None
    op_name: str | None
    source: Source
    parts: list[Part]
    causes: list[Cause]


class Uncounted(Struct, frozen=True):
    """What communicates, or may (`unknown`), without a collective: no total has its bytes.

    A kernel, or a custom call, by its `name`; `type` is that of a value that is copied to another device.
    """

    name: str
    does: Literal["copy", "signal", "unknown"]
    type: str | None
    source: Source


def collective_of(collective: report.Collective, program: Program) -> Collective:
    """A collective in its JSON shape."""
    return shaped(
        Collective,
        collective,
        axes=None if collective.axes is None else list(map(str, collective.axes)),
        operand_types=list(map(str, collective.operand_types)),
        result_types=list(map(str, collective.result_types)),
        parts=[shaped(Part, part, type=str(part.type)) for part in collective.parts],
        estimated_seconds=None if collective.estimate is None else collective.estimate.seconds,
        estimate=None if collective.estimate is None else estimate_of(collective.estimate),
        causes=list(map(_cause, causes_of(program, collective))),
    )


def _cause(cause: CollectiveCause) -> Cause:
    origins, against = (list(map(why_of, found)) for found in (cause.origins, cause.against))
    return shaped(Cause, cause, **at(cause.place), origins=origins, against=against)
