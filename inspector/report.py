"""The Report: what all analyses found in one capture. Every front end renders this value and nothing else.

Sizes are bytes per device and execution; unknown is None, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..parsers.errors import Problem
from ..parsers.mesh_syntax import MeshSyntax
from ..parsers.replica_groups import Groups
from ..parsers.source import Span
from ..parsers.source_frames import Frame
from .capture.model import Capture, Dialect
from .cost.estimate import Estimate, FunctionCost

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


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective operation of one stage, asynchronous halves and clones counted once.

    `groups` and `pairs` hold partition numbers, as the program numbers its devices: `Subject.device_assignment` turns
    them into device ids. `axes` print as Shardy prints them (`x`, or `x:(1)2` for a part of x); they are None when no
    axes form the groups, and empty when every group is a single device. `wire_bytes` is what one device sends in a
    bandwidth-optimal algorithm. `executions` multiplies the trip counts of the enclosing loops. `estimate` is the time
    of one execution on the target, None where that has no links that are known.
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
class VariableVariance:
    """The mesh axes in the type of one equation's output, as JAX's own type system states them."""

    equation: str
    primitive: str
    value: str
    type: str
    varying: tuple[str, ...]
    unreduced: tuple[str, ...]
    reduced: tuple[str, ...]
    source: SourcePlace


@dataclass(frozen=True, slots=True)
class Report:
    """All that is known of one capture; `meshes` are over the numbers of its `partitions`."""

    capture: Capture
    meshes: tuple[MeshSyntax, ...] = ()
    partitions: int = 1
    stages: tuple[StageSummary, ...] = ()
    collectives: tuple[Collective, ...] = ()
    variance: tuple[VariableVariance, ...] = ()
    cost: FunctionCost | None = None
