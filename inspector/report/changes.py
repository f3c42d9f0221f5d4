"""Differences between two lowerings of a program, and the outlines of which they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import msgspec

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Span
from ..capture.model import Execution, OutputSummary
from ..ir.stage import ParsedStage
from ..units import known_product, known_sum
from .collectives import Kind, Origin, Pass
from .findings import Finding
from .shardings import Role

T = TypeVar("T")


class Pair(Record, Generic[T], frozen=True):
    """`count` things of one side and those of the other that they are; None on the side that has none."""

    before: T | None
    after: T | None
    count: int

    @property
    def present(self) -> T:
        """The item after the change; of a removed one, the item before."""
        found = self.before if self.after is None else self.after
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class FindingKey:
    """The key by which findings are compared. The first finding of the key, and its place, are not compared."""

    rule: str
    axes: tuple[AxisRef, ...]
    line: Line
    finding: Finding = field(compare=False)
    where: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class IntermediateSharding:
    """The sharding of a value inside a program; `spec` is None if unknown. `where` is not compared."""

    role: Role
    name: str
    type: str
    spec: str | None
    line: Line
    where: str = field(compare=False)


class CollectiveSignature(Record, frozen=True):
    """The communication of a collective: two of equal signature are the same communication, wherever they are.

    Bytes are per device and execution. `dtypes` are those that travel, sorted; shapes are left out, since compilers
    reshape freely. `partners` stands for the pairs of a permute, or for groups that no axes form. `fused_form` says as
    what it is written, where that is something else.
    """

    kind: Kind
    reduction: str | None
    axes: tuple[AxisRef, ...] | None
    dtypes: tuple[str, ...]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    is_async: bool
    partners: str = ""
    fused_form: str | None = None

    @property
    def total_wire(self) -> int | None:
        """Bytes that a device sends in one run of the program."""
        return known_product(self.wire_bytes, self.executions)


class Place(Record, frozen=True):
    """The source of a collective: for each frame, innermost first, the function and the text of its line.

    Where the compiler recorded no line, the only entry is the name that it gives, an argument's or a path of
    operations. `operation` is JAX's, in its spelling.
    """

    frames: tuple[Line, ...]
    operation: str
    direction: Pass


class Operand(Record, frozen=True, order=True):
    """One of the arrays that a collective carries: its dtype, and its elements on each device before and after."""

    dtype: str
    elements_in: int
    elements_out: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """One collective, or several that differ in nothing that counts. What is not compared is of the first of them.

    `operands` are in the order of the text; empty where not all of them are known.
    """

    work: CollectiveSignature
    place: Place
    origin: Origin = field(compare=False)
    types: str = field(compare=False)
    where: str = field(compare=False)
    name: str = field(compare=False, default="")
    in_loop: bool = field(compare=False, default=False)
    span: Span | None = field(compare=False, default=None)
    operands: tuple[Operand, ...] = field(compare=False, default=())


Counted = tuple[tuple[Transfer, int], ...]
"""Collectives, each with how often it is there."""


class BoundarySharding(Record, frozen=True):
    """The sharding of an argument or an output; `spec` is None if unknown."""

    role: str
    name: str
    type: str
    spec: str | None


class Fingerprint(Record, frozen=True):
    """One side of a comparison, at one stage.

    `transfers` are in the order of the text, each with how often it is there; `insides` are the values inside that are
    sharded. `opcodes` counts the operations of the stage, `sizes` are bytes of memory per device, `costs` what the
    model says, by name. `text` is the stage itself, None of what is kept without it; so is `execution`, the result of
    a run.
    """

    title: str
    stage: str
    transfers: Counted
    borders: tuple[BoundarySharding, ...]
    insides: tuple[tuple[IntermediateSharding, int], ...] = ()
    findings: tuple[tuple[FindingKey, int], ...] = ()
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    costs: dict[str, float] = msgspec.field(default_factory=dict)
    opcodes: dict[str, int] = msgspec.field(default_factory=dict)
    text: ParsedStage | None = None
    execution: Execution | None = None

    @property
    def count(self) -> int:
        """Number of collectives."""
        return sum(count for _, count in self.transfers)

    @property
    def total_wire(self) -> int | None:
        """Bytes that a device sends in one run of the program; None where one collective's are not known."""
        return total_wire(self.transfers)


def total_wire(transfers: Counted) -> int | None:
    """Bytes that a device sends for all of them in one run of the program; None where one's are not known."""
    return known_sum(known_product(one.work.total_wire, count) for one, count in transfers)


class OutputChange(Record, frozen=True):
    """An output with other values; `distance` is a multiple of what rounding explains, infinite for other integers."""

    before: OutputSummary
    after: OutputSummary
    distance: float


class ValueComparison(Record, frozen=True):
    """Numbers of outputs that both runs have: `equal` in every bit, `close` within rounding, `unknown`, and the others.

    Those that differ are in their order. `same_inputs` is None where the arguments of a run are not known.
    """

    equal: int
    close: int
    unknown: int
    differs: tuple[OutputChange, ...]
    same_inputs: bool | None

    @property
    def count(self) -> int:
        """Number of outputs that both runs have."""
        return self.equal + self.close + self.unknown + len(self.differs)


class ValidatedPair(Record, frozen=True):
    """The outputs of two compiled programs: the largest difference, in multiples of the norm, and those that differ.

    `reason` says why they could not be compared.
    """

    outputs: int = 0
    error: float = 0.0
    differing: tuple[str, ...] = ()
    reason: str = ""


ChangeKind = Literal["added", "removed", "changed", "regrouped"]


class Change(Record, frozen=True):
    """`count` times: collectives that came, went, do something else, or do the same in another number of them.

    The sides have each collective with how often it is there, what moves most first; `what` names the fields of their
    work that differ.
    """

    kind: ChangeKind
    count: int
    befores: Counted
    afters: Counted
    what: tuple[str, ...] = ()

    @property
    def before(self) -> Transfer | None:
        """The largest transfer on that side, None if there is none."""
        return self.befores[0][0] if self.befores else None

    @property
    def after(self) -> Transfer | None:
        """The largest transfer on that side, None if there is none."""
        return self.afters[0][0] if self.afters else None

    @property
    def numbers(self) -> tuple[int, int]:
        """Number of collectives concerned on each side."""
        before, after = (sum(count for _, count in side) * self.count for side in (self.befores, self.afters))
        return before, after

    @property
    def wire_bytes(self) -> int | None:
        """Bytes that a device sends more in one run of the program, for all of them; None where that is not known."""
        if self.kind == "regrouped":
            return 0
        before, after = map(total_wire, (self.befores, self.afters))
        return None if before is None or after is None else (after - before) * self.count


class Metric(Record, frozen=True):
    """A number that differs; None on the side that does not have it."""

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Node:
    """An operation. `name` is that of its result, `operands` those of what it takes, as far as they have names.

    `does` is what it does to whatever it takes: no names, numbers and positions in it; `attributes` are the parts of
    that by name. `line` is what one reads.
    """

    name: str
    opcode: str
    operands: tuple[str, ...]
    span: Span
    type: str
    does: Hashable = field(repr=False)
    attributes: Mapping[str, str] = field(hash=False, compare=False, repr=False)
    line: str = field(compare=False, repr=False)


class Facing(Record, frozen=True):
    """An operation on each side, or on one alone; `same` where they do the same with the same operands' types."""

    before: Node | None
    after: Node | None
    same: bool = False


class Diff(Record, frozen=True):
    """All that differs; `changes` are those of communication, the largest first.

    `borders` are arguments and outputs that are sharded otherwise, have another type, came or went. `insides` are
    values of one line whose sharding changed in the same way; of constraints, also those that came or went.
    `findings` are on one side only.
    `values` compares the outputs of both runs, if both were run.
    `same` is how many collectives are the same on both sides. `around` gives the text around a change on both sides,
    empty where a side has no text, such as a golden.
    """

    before: Fingerprint
    after: Fingerprint
    changes: tuple[Change, ...]
    same: int
    borders: tuple[Pair[BoundarySharding], ...]
    insides: tuple[Pair[IntermediateSharding], ...]
    findings: tuple[Pair[FindingKey], ...]
    sizes: tuple[Metric, ...]
    costs: tuple[Metric, ...]
    opcodes: tuple[Metric, ...]
    values: ValueComparison | None = None
    around: Callable[[Change], tuple[Facing, ...]] = lambda change: ()

    @property
    def communication_differs(self) -> bool:
        """True if any collective was added, removed or changed; being combined or split is no difference."""
        return any(change.kind != "regrouped" for change in self.changes)


class PassChange(Record, frozen=True):
    """A pass that changes communication, in its pipeline, and what it changes."""

    pipeline: str
    name: str
    diff: Diff


Line = tuple[str, str]
"""The function, and the text of the line without its comment; both empty where nothing is known."""
