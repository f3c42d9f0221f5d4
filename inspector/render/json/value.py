"""Arguments and results, and the variance of values inside shard_maps."""

from __future__ import annotations

from msgspec import Struct

from ...capture import model
from .shaped import shaped
from .source import Source


class Value(Struct, frozen=True):
    """An argument or a result: `asked` is the requested PartitionSpec, `actual` the one of the compiled program.

    Null where none was requested; where the program was not compiled, or has no PartitionSpec for it.
    """

    path: str
    type: str
    asked: str | None
    donated: bool
    actual: str | None = None


class AxisEntry(Struct, frozen=True):
    """Where a value came to vary over an axis: an equation, by its primitive or as an input of a shard_map."""

    axis: str
    equation: str
    by: str
    source: Source


class Variance(Struct, frozen=True):
    """The mesh axes over which one value inside a shard_map varies, as JAX types it, or `inferred` with its check off.

    `hidden` are axes over which it may differ although its type says otherwise.
    """

    equation: str
    primitive: str
    value: str
    type: str
    varying: list[str]
    unreduced: list[str]
    reduced: list[str]
    inferred: bool
    hidden: list[str]
    entered: list[AxisEntry]
    left: list[str]
    source: Source


def value_of(value: model.Value) -> Value:
    """An argument or a result in its JSON shape."""
    return shaped(Value, value, asked=value.spec)
