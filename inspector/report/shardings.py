"""Shardings of values."""

from __future__ import annotations

from typing import Literal

from ...parsers.record import Record
from ...parsers.source import Span
from ..ir.array_sharding import ArraySharding
from ..ir.types import ArrayType
from .position import SourcePosition

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
