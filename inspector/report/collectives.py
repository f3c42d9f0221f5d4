"""The collectives of a program, what each moves, and where it comes from.

Sizes are bytes per device and execution; unknown is None, never a guess.
"""

from __future__ import annotations

from typing import Literal

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.sharding_syntax.replica_groups import Groups
from ...parsers.source import Span
from ..catalog.spellings import Kind as Kind
from ..ir.types import ArrayType
from ..units import known_product
from .cost import Estimate
from .position import SourcePosition

Origin = Literal["user", "explicit", "autodiff", "partitioner", "compiler", "mixed", "unknown"]
"""The author of a collective.

`user`: it is written in the program. `autodiff`: JAX derived it from what is written there. `explicit`: the partitioner
inserted it for a `reshard` or an `out_sharding`, also those that JAX writes into backward passes. `partitioner`: it
inserted it by itself. `compiler`: a later pass made it. `mixed`: some of the parts that it was combined of were asked
for, and some were not.
"""

WRITTEN = frozenset({"user", "autodiff"})
"""Origins of collectives that are in the lowered program, before any partitioner."""

REQUESTED = WRITTEN | {"explicit"}
"""Origins of collectives that the source asks for."""

Pass = Literal["forward", "backward", "recompute", "unknown"]


class CollectivePart(Record, frozen=True):
    """One of several collectives that the compiler has made one of: what it gave, and where it comes from.

    `module`, `argument`, `averages` and `of_gradients` are as those of a collective. `span` is the instruction that
    cuts it out of what the compiler concatenated, and None where it is a result of its own.
    """

    type: ArrayType
    source: SourcePosition
    op_name: str | None
    origin: Origin = "unknown"
    direction: Pass = "unknown"
    module: tuple[str, ...] = ()
    argument: str | None = None
    averages: bool = False
    of_gradients: bool = False
    span: Span | None = None


class Collective(Record, frozen=True):
    """One collective operation of one stage, asynchronous halves and clones counted once.

    `groups` and `pairs` hold partition numbers, as the program numbers its devices: `Subject.device_assignment` turns
    them into device ids. `axes` are None when no axes form the groups, and empty when every group is a single device.
    `wire_bytes` is what one device sends in a bandwidth-optimal algorithm. `executions` multiplies the trip counts of
    the enclosing loops, None where one, or a branch, is decided at run time; `most_executions` is their upper bound.
    `estimate` is the time of one execution on the target, None where that has no links that are
    known. `parts` are the collectives of which it is made. `module` is the path of name scopes around it, those of
    Linen's modules among them; without any, the keys of `argument`, `("layers", "0", "wq")`, or those that the outputs
    have in common in which its result ends. `argument` is the one argument of the function that it moves, or that the
    operation takes for which it is there: `params['layers'][0]['wq']`. `averages` is true of a sum that the program
    only divides by the number of devices, as `pmean` does, `of_gradients` of one that it wrote of results of a backward
    pass. Types, and so bytes, are those of the partitioned program where the CPU backend widened them: `widened` are
    such dtypes, each with the one that a CPU sends. `cpu_call` is the only user of the results, if that is a custom
    call of the CPU backend.
    """

    stage: str
    kind: Kind
    name: str
    computation: str
    span: Span
    axes: tuple[AxisRef, ...] | None
    groups: Groups
    pairs: tuple[tuple[int, int], ...]
    operand_types: tuple[ArrayType, ...]
    result_types: tuple[ArrayType, ...]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    is_async: bool
    origin: Origin
    direction: Pass
    source: SourcePosition
    reduction: str | None = None
    channel_id: int | None = None
    fused_form: str | None = None
    op_name: str | None = None
    loops: tuple[str, ...] = ()
    estimate: Estimate | None = None
    parts: tuple[CollectivePart, ...] = ()
    module: tuple[str, ...] = ()
    argument: str | None = None
    most_executions: int | None = None
    averages: bool = False
    of_gradients: bool = False
    widened: tuple[tuple[str, str], ...] = ()
    cpu_call: str = ""

    @property
    def part_types(self) -> tuple[ArrayType, ...]:
        """The types of its parts: of what it was concatenated from, or else of its results."""
        return tuple(part.type for part in self.parts) or self.result_types

    @property
    def step_bytes(self) -> int | None:
        """Bytes that a device sends for it in one run of the program."""
        return known_product(self.wire_bytes, self.executions)

    @property
    def most_step_bytes(self) -> int | None:
        """The upper bound of the same, where it is executed as often as it can be."""
        return known_product(self.wire_bytes, self.most_executions)

    @property
    def step_seconds(self) -> float | None:
        """Estimated seconds for it in one run of the program, its executions one after another."""
        return None if self.estimate is None else known_product(self.estimate.seconds, self.executions)


class UncountedCommunication(Record, frozen=True):
    """Communication, or what may be some, that is no collective: bytes and groups are not in any total.

    `name` is the kernel's, or a custom call's; `does` what of it reaches other devices, `copy` of a value of `type`,
    `signal`, `host` where it calls the host or moves a value to or from it, or `unknown` where nothing is known of it.
    `pairs` are the partitions that may copy or signal, each with the one that it reaches, and `axes` those along which
    they differ; None where that is not known. `count` are the operations of the program that are alike in all of this.
    """

    name: str
    does: Literal["copy", "signal", "host", "unknown"]
    type: ArrayType | None
    source: SourcePosition
    axes: tuple[AxisRef, ...] | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    count: int = 1
