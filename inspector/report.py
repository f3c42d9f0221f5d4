"""The Report: what all analyses found in one capture. Every front end renders this value and nothing else.

Sizes are bytes per device and execution; unknown is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..parsers.errors import Problem
from ..parsers.mesh_syntax import MeshSyntax
from ..parsers.replica_groups import Groups
from ..parsers.source import Span
from ..parsers.source_frames import Frame
from .capture.model import Capture, Dialect, Message
from .capture.values import Probe
from .cost.estimate import Estimate, FunctionCost
from .shardings.sharding import ArraySharding

Kind = Literal[
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "send-recv",
]
Origin = Literal["user", "partitioner", "compiler", "unknown"]
Pass = Literal["forward", "backward", "recompute", "unknown"]
Confidence = Literal["exact", "name", "shape", "none"]
Severity = Literal["error", "warning", "info"]
Certainty = Literal["proved", "likely", "possible"]
Role = Literal["argument", "output", "constraint", "shard_map input", "shard_map output", "value"]


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where in the user's files something comes from; `stack` is innermost first.

    `confidence`: `exact` where the compiler recorded the position for this very operation, `name` where it was found
    through a name, `shape` where only types and neighbours agree, `none` where nothing is known (and `stack` is empty).
    """

    stack: tuple[Frame, ...] = ()
    confidence: Confidence = "none"

    @property
    def frame(self) -> Frame | None:
        """The innermost frame."""
        return self.stack[0] if self.stack else None

    @property
    def file(self) -> str | None:
        """The file of the innermost frame."""
        return self.stack[0].file if self.stack else None

    @property
    def line(self) -> int | None:
        """The line of the innermost frame, from 1."""
        return self.stack[0].line if self.stack else None


@dataclass(frozen=True, slots=True)
class CollectivePart:
    """One of several collectives that the compiler has made one vector of: what it gave, and where it comes from."""

    type: str
    source: SourcePlace
    op_name: str | None


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective operation of one stage, asynchronous halves and clones counted once.

    `groups` and `pairs` hold partition numbers, as the program numbers its devices: `Subject.device_assignment` turns
    them into device ids. `axes` print as Shardy prints them (`x`, or `x:(1)2` for a part of x); they are None when no
    axes form the groups, and empty when every group is a single device. `wire_bytes` is what one device sends in a
    bandwidth-optimal algorithm. `executions` multiplies the trip counts of the enclosing loops. `estimate` is the time
    of one execution on the target, None where that has no links that are known. `parts` are the collectives of which it
    is made, where those were flattened and written one behind the other.
    """

    stage: str
    kind: Kind
    name: str
    computation: str
    span: Span
    axes: tuple[str, ...] | None
    groups: Groups
    pairs: tuple[tuple[int, int], ...]
    operand_types: tuple[str, ...]
    result_types: tuple[str, ...]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    is_async: bool
    origin: Origin
    direction: Pass
    source: SourcePlace
    reduction: str | None = None
    channel_id: int | None = None
    fused_form: str | None = None
    op_name: str | None = None
    loops: tuple[str, ...] = ()
    estimate: Estimate | None = None
    parts: tuple[CollectivePart, ...] = ()


@dataclass(frozen=True, slots=True)
class StageSummary:
    """The size of one stage, how its operations are distributed, and what could not be read in it."""

    name: str
    dialect: Dialect
    bytes: int
    lines: int
    instructions: int
    opcodes: dict[str, int]
    seconds: float | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class AxisEntry:
    """Where a value came to vary over an axis.

    `equation` is its id; `by` its primitive, or `in_specs[1]` where it came into a shard_map as that input.
    """

    axis: str
    equation: str
    by: str
    source: SourcePlace


@dataclass(frozen=True, slots=True)
class LiveValue:
    """A value that takes memory at the peak, by the instruction that made it, `opcode`, or `argument`."""

    name: str
    bytes: int
    type: str
    op_name: str
    direction: Pass
    source: SourcePlace
    opcode: str = ""


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The most memory that is taken on one device, and what is alive then, largest first.

    `capacity` is that of a device of the target, None where it is not known.
    """

    bytes: int
    capacity: int | None
    alive: tuple[LiveValue, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether the device has so much memory; None where that is not known."""
        return None if self.capacity is None else self.bytes <= self.capacity


@dataclass(frozen=True, slots=True)
class VariableVariance:
    """The mesh axes over which one equation's output varies, is unreduced, or reduced.

    They are JAX's own types where the shard_map has its check on; where it is off they are `inferred`, and say which
    values may really differ. `hidden` are axes over which the value may differ although JAX's type says it does not.
    `entered` tells for each axis, `hidden` ones included, where it came from; `left` are axes that the operands have
    and the output has not.
    """

    equation: str
    primitive: str
    value: str
    type: str
    varying: tuple[str, ...]
    unreduced: tuple[str, ...]
    reduced: tuple[str, ...]
    source: SourcePlace
    inferred: bool = False
    hidden: tuple[str, ...] = ()
    entered: tuple[AxisEntry, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbedValue:
    """A recorded value and where it is from.

    `name` is the variable's, or the path of an argument or output; `primitive` and the `axes` that it names are the
    equation's.
    """

    probe: Probe
    name: str
    primitive: str
    axes: tuple[str, ...]
    source: SourcePlace


@dataclass(frozen=True, slots=True)
class Divergence:
    """A value whose bits differ between devices along an axis over which it is said to be the same.

    `declared` tells who says so: JAX's `type`, our `inferred` variance where the check is off, or the `out_specs`
    through which it leaves. `iteration` is the first in which `devices`, two of those that differ, do. `is_first` is
    false for what only follows from another one.
    """

    equation: str
    primitive: str
    value: str
    type: str
    axis: str
    declared: Literal["type", "inferred", "out_specs"]
    iteration: tuple[int, ...]
    devices: tuple[int, ...]
    is_first: bool
    source: SourcePlace


@dataclass(frozen=True, slots=True)
class ShardedValue:
    """How one value is sharded after propagation.

    `value` is its name in the stage's text, where it stands at `span`; `name` is its path in the pytree, or the name
    that JAX gave its operation. `type` is global, `local_type` one device's part; inside a shard_map over `manual` axes
    both are of one run of its body. `spec` is what it got; `asked` what was asked for, and `agrees` whether that is the
    same, both None where nothing was asked. `replicated_bytes` are those of a device's part that would lie elsewhere if
    each element were held once: part × (1 - 1 / copies).
    """

    stage: str
    role: Role
    value: str
    name: str
    span: Span
    type: str
    local_type: str | None
    sharding: ArraySharding | None
    spec: str | None
    asked: str | None
    agrees: bool | None
    replicated_bytes: int | None
    source: SourcePlace
    manual: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """What a finding is about: `what` it is, as one would call it, and where it stands.

    `span` is in the shown text of `stage`; both are None where nothing stands for it in a text.
    """

    what: str
    source: SourcePlace
    stage: str | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a user's file to be replaced by `text`.

    Lines count from 1, columns are bytes of UTF-8 from 0, both as Python's `ast` has them; the end is not included.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of the program when the edits of a finding were tried on a copy of the source.

    `verified` where the finding is gone and everything else is as good as before; `why` says so in words, or what was
    in the way. Collectives are counted by kind and axes, and bytes are those that a device sends in one run.
    """

    verified: bool
    why: str
    before: tuple[tuple[str, int], ...] = ()
    after: tuple[tuple[str, int], ...] = ()
    bytes_before: int | None = None
    bytes_after: int | None = None
    seconds_before: float | None = None
    seconds_after: float | None = None
    values: Literal["equal", "close", "differ", "not compared"] = "not compared"


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic at one place: what is wrong, how that is known, and what to do about it.

    `error` is a wrong result, `warning` is cost. It is `proved` where the levels agree or live values show it, `likely`
    where one level says so, `possible` where it depends on what is not known. `evidence` are names and texts; `fix` is
    in the user's own names, and `edits` are that fix where it can be written as a change of the source. `saved_bytes`
    are those that a device sends less in one execution, `saved_seconds` is the time of that on the target. `trial` says
    how the edits were found to work, None where they were not tried.
    """

    rule: str
    slug: str
    severity: Severity
    confidence: Certainty
    axes: tuple[str, ...]
    message: str
    place: FindingPlace
    related: tuple[FindingPlace, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    fix: str | None = None
    saved_bytes: int | None = None
    saved_seconds: float | None = None
    edits: tuple[Edit, ...] = ()
    trial: Trial | None = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that may let a function trace: in words, as edits, and whether it did; None where it was not tried."""

    what: str
    edits: tuple[Edit, ...] = ()
    works: bool | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One step of how a value came to be what it is: in words, and where."""

    what: str
    source: SourcePlace = field(default_factory=SourcePlace)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a function does not trace: in short, how it came to that, and what may mend it."""

    title: str
    steps: tuple[StoryStep, ...] = ()
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """What the compiler or JAX said, what it is `about`, and where that stands in the user's source."""

    message: Message
    about: str | None = None
    source: SourcePlace = field(default_factory=SourcePlace)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Words of the user's that findings of some `rules`, by id or slug, are known at a place, and for what `reason`.

    They stand at `line` of `file`, 0 where that is no source but the settings, and hold for the lines from `first` to
    `last`. `problem` says why they are of no use, where that is to be told.
    """

    file: str
    line: int
    rules: tuple[str, ...]
    reason: str
    first: int = 0
    last: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that is not told, and by whose word."""

    finding: Finding
    by: Suppression


@dataclass(frozen=True, slots=True)
class Report:
    """All that is known of one capture; `meshes` are over the numbers of its `partitions`.

    `shardings` are those at the borders: of arguments and outputs, at constraints and shard_maps. Those of all other
    values, which may be very many, `shardings/table.py` gives. `thresholds` are those of rules that the user has set,
    by id; `idle` are suppressions that suppress nothing.
    """

    capture: Capture
    meshes: tuple[MeshSyntax, ...] = ()
    partitions: int = 1
    stages: tuple[StageSummary, ...] = ()
    collectives: tuple[Collective, ...] = ()
    variance: tuple[VariableVariance, ...] = ()
    shardings: tuple[ShardedValue, ...] = ()
    probes: tuple[ProbedValue, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    cost: FunctionCost | None = None
    peak: PeakMemory | None = None
    messages: tuple[PlacedMessage, ...] = ()
    explanation: Explanation | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    idle: tuple[Suppression, ...] = ()

    def could_be_read(self, stage: str) -> bool:
        """Whether all of a stage's text could: if not, there may be more in it than is known."""
        return not any(each.problems for each in self.stages if each.name == stage)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .render.notebook import report_to_html

        return report_to_html(self)
