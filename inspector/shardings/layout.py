"""One row of the table of shardings: how a value is laid out on each device, and whether that is as requested."""

from __future__ import annotations

from collections.abc import Callable

from ...parsers.record import Record
from ...parsers.source import Span
from ..ir.array_sharding import ArraySharding
from ..ir.types import ArrayType
from ..report import Role, ShardedValue, SourcePosition
from ..units import bytes_of
from .requested import agrees


class Layout(Record, frozen=True):
    """An array type under a sharding, with one device's part; the type alone where its shape or sharding is unknown."""

    type: ArrayType
    local_type: ArrayType | None = None
    sharding: ArraySharding | None = None
    spec: str | None = None
    replicated_bytes: int | None = None

    def row(
        self,
        stage: str,
        role: Role,
        value: str,
        name: str,
        span: Span,
        source: SourcePosition,
        requested: ArraySharding | None = None,
        manual: tuple[str, ...] = (),
        spelled: Callable[[ArraySharding], str] = str,
    ) -> ShardedValue:
        """The row of a value that is laid out so."""
        return ShardedValue(
            stage=stage,
            role=role,
            value=value,
            name=name,
            span=span,
            type=self.type,
            local_type=self.local_type,
            sharding=self.sharding,
            spec=self.spec,
            requested=None if requested is None else spelled(requested),
            agrees=None if requested is None or self.sharding is None else agrees(requested, self.sharding),
            replicated_bytes=self.replicated_bytes,
            source=source,
            manual=manual,
        )


def layout_of(type: ArrayType, sharding: ArraySharding | None, spelled: Callable[[ArraySharding], str] = str) -> Layout:
    """The layout of an array of a type under a sharding."""
    shape = type.shape
    if shape is None or sharding is None or len(sharding.dims) != len(shape) or min(shape, default=0) < 0:
        return Layout(type)
    local = sharding.local_shape(shape)
    size = bytes_of(type.dtype, local)
    replicated = None if size is None else size - size // sharding.copies
    return Layout(type, ArrayType(type.dtype, local), sharding, spelled(sharding), replicated)
