"""Arguments and results, and the variance of values inside shard_maps."""

from __future__ import annotations

from msgspec import Struct

from ...capture import model
from ...report import VariableVariance
from .source import Source, source_of


class Value(Struct, frozen=True):
    """An argument or a result: `asked` is its PartitionSpec, null where none was asked for."""

    path: str
    type: str
    asked: str | None
    donated: bool


class Variance(Struct, frozen=True):
    """The mesh axes in the type of one value inside a shard_map, as JAX states them."""

    equation: str
    primitive: str
    value: str
    type: str
    varying: list[str]
    unreduced: list[str]
    reduced: list[str]
    source: Source


def value_of(value: model.Value) -> Value:
    """An argument or a result in its JSON shape."""
    return Value(value.path, value.type, value.spec, value.donated)


def variance_of(value: VariableVariance) -> Variance:
    """A value's variance in its JSON shape."""
    return Variance(
        equation=value.equation,
        primitive=value.primitive,
        value=value.value,
        type=value.type,
        varying=list(value.varying),
        unreduced=list(value.unreduced),
        reduced=list(value.reduced),
        source=source_of(value.source),
    )
