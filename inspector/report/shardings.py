"""Shardings of values, the reasons for them, conflicts between them, and causes of the partitioner's communication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Span
from ..ir.array_sharding import ArraySharding
from ..ir.types import ArrayType
from .position import Confidence, SourcePosition

Role = Literal["argument", "output", "constraint", "shard_map input", "shard_map output", "value"]


class ShardedValue(Record, frozen=True):
    """The sharding of one value after propagation.

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
    type: ArrayType
    local_type: ArrayType | None
    sharding: ArraySharding | None
    spec: str | None
    requested: str | None
    agrees: bool | None
    replicated_bytes: int | None
    source: SourcePosition
    manual: tuple[str, ...] = ()

    @property
    def uneven(self) -> tuple[int, ...]:
        """The dimensions that the axes requested of them do not divide."""
        if self.requested is None or self.sharding is None or self.manual or self.type.shape is None:
            return ()
        pairs = zip(self.type.shape, self.sharding.parts, strict=False)
        return tuple(dim for dim, (size, parts) in enumerate(pairs) if size % parts)

    @property
    def leaf(self) -> str:
        """Its path inside of the argument or result, as `['w1']`; empty for all of that."""
        return self.name[self.name.index("[") :] if "[" in self.name else ""


class NamedOperation(Record, frozen=True):
    """An operation by JAX's `primitive`, empty where its text has none, and the `opcode` of the text's language."""

    primitive: str
    opcode: str

    def __str__(self) -> str:
        return self.primitive or self.opcode


class ValueName(Record, frozen=True):
    """An argument or output by its path, or an operation's result by its name in the text and what it is `made_by`.

    With `is_input`, `name` is the number of an input of that operation, a shard_map.
    """

    name: str
    made_by: NamedOperation | None = None
    is_input: bool = False

    def __str__(self) -> str:
        if self.made_by is None:
            return self.name
        return f"input {self.name} of the {self.made_by}" if self.is_input else f"{self.name} ({self.made_by})"


class ValueDimension(Record, frozen=True):
    """A dimension of a value; `dim` is None where no dimension is cut."""

    value: ValueName
    dim: int | None

    def __str__(self) -> str:
        return str(self.value) if self.dim is None else f"{self.value} dim {self.dim}"


class BoundaryOrigin(Record, frozen=True):
    """The sharding of an argument or an output of the function; of its dimension `dim`, where that is known."""

    role: Literal["argument", "output"]
    name: str
    dim: int | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


class ShardMapOrigin(Record, frozen=True):
    """A spec of a shard_map, for the input or output of that number."""

    side: Literal["input", "output"]
    number: int | None

    def __str__(self) -> str:
        return f"{self.side} {self.number} of the shard_map"


class ConstraintOrigin(Record, frozen=True):
    """A with_sharding_constraint, or the sharding that another operation was given."""

    operation: NamedOperation | None = None

    def __str__(self) -> str:
        return "with_sharding_constraint" if self.operation is None else f"the sharding of {self.operation}"


AxisOrigin = BoundaryOrigin | ShardMapOrigin | ConstraintOrigin
"""The origin of an axis in a sharding."""


Effect = Literal["sum", "reshard", "move", "own"]


class Node(NamedTuple):
    """A value of the propagated program: one of the arguments or outputs of its function, or of the results or the
    block arguments of the operation in row `row`, where they are counted from 0. `region` is that of the block."""

    kind: Literal["argument", "result", "block", "output"]
    row: int
    number: int
    region: int = 0


class NodeAxis(NamedTuple):
    """An axis in the sharding of a value; `shardings/explained.py` says why it is there."""

    node: Node
    axis: AxisRef


class ExplainedStep(Record, frozen=True):
    """An axis went from one value to another at an operation.

    `number` counts the steps of the whole propagation; it and `operation` are None at the return of the function.
    `source` and `target` are values, with the dimension that the axis cuts: `w1 dim 1`. `rule` says in einsum letters
    which dimensions of the operation belong together; None where it has none.
    """

    number: int | None
    operation: NamedOperation | None
    rule: str | None
    source: ValueDimension
    target: ValueDimension
    place: SourcePosition
    span: Span | None


class Why(Record, frozen=True):
    """The reason why a value is sharded along `axis` in dimension `dim` (None if it is unreduced along it).

    `origin` is who asked for it; `place` is the line of that, where there is one. `steps` lead from the
    value back to `root`; `omitted` counts the ones before it that are not listed.
    """

    axis: AxisRef
    dim: int | None
    origin: AxisOrigin
    place: SourcePosition
    root: ValueDimension
    steps: tuple[ExplainedStep, ...]
    omitted: int = 0


class Side(Record, frozen=True):
    """A dimension of a value of the operation, the axes that cut it, and why.

    `elsewhere` is why axes that others have there cut another dimension of this value: no axis can cut two. Of the
    paths by which the axes came only the last step is listed.
    """

    value: ValueDimension
    axes: tuple[AxisRef, ...]
    why: tuple[Why, ...]
    elsewhere: tuple[Why, ...] = ()


class Conflict(Record, frozen=True):
    """Values of an operation are cut along different axes in dimensions that belong together: a `factor` of `rule`.

    `chosen` is the side that the partitioned program executes the operation as, `rejected` are those that it does not,
    and `undecided` those of which its shapes do not tell.
    """

    operation: NamedOperation
    rule: str
    factor: str
    place: SourcePosition
    span: Span
    chosen: Side | None
    rejected: tuple[Side, ...]
    undecided: tuple[Side, ...] = ()


class MovedDimension(Record, frozen=True):
    """A dimension of an operand or result of an operation."""

    is_operand: bool
    value: ValueName
    dim: int

    @property
    def made_by(self) -> NamedOperation | None:
        """The operation that gives the value; None for arguments, and for what comes into a shard_map."""
        return None if self.value.is_input else self.value.made_by

    @property
    def of(self) -> str:
        """The value, as `operand %12 (mul)`."""
        return f"{'operand' if self.is_operand else 'result'} {self.value}"

    def __str__(self) -> str:
        return f"dim {self.dim} of {self.of}"


class CollectiveCause(Record, frozen=True):
    """The reason for a collective: its effect on one operation.

    `operation` may be the output that a value becomes. `moved` is what it communicates; propagation left it as
    `before`, and the operation needs it as `after` (None for a sum and where that is not one sharding). `origins` are
    the collective's axes that cut it, `against` those that cut other values of the operation otherwise.
    `confidence` is how the operation was found. `needed` is true of the gradients of weights: each device has that of
    its part of the data. `elements` is how many of the value are on one device, None where that is not known. `row` is
    that of the operation in the propagated program, None for an output.
    `is_merged` is true of a dimension that the operation puts behind another one, in one dimension of its result,
    `is_kept` of one whose blocks are blocks of a dimension of its result. `is_contraction` is true of a matrix
    multiplication or a convolution, `is_lookup` of an operation that reads or writes elements at indices.
    """

    effect: Effect
    operation: NamedOperation | BoundaryOrigin
    rule: str | None
    place: SourcePosition
    moved: MovedDimension | None
    before: ArraySharding | None
    after: ArraySharding | None
    origins: tuple[NodeAxis, ...]
    against: tuple[NodeAxis, ...]
    needed: bool
    confidence: Confidence
    elements: int | None = None
    row: int | None = None
    is_merged: bool = False
    is_kept: bool = False
    is_contraction: bool = False
    is_lookup: bool = False

    @property
    def primitive(self) -> str:
        """JAX's name of the operation, empty for an output."""
        return str(self.operation) if isinstance(self.operation, NamedOperation) else ""


class PropagationSteps(Record, frozen=True):
    """The steps at which something moved, after the beginning; the spec of a value after one, and that in words."""

    numbers: tuple[int, ...]
    spec: Callable[[int, ShardedValue], str]
    words: Callable[[int], str]
