"""HLO's types in JAX's spelling, and their sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...parsers.hlo.types import UNBOUNDED, ArrayShape, HloType, TupleShape
from .types import ArrayType, total_bytes

_NAMES = {"pred": "bool", "token": "token"}
_SIGNED = re.compile(r"s(\d+)")


def leaves(type: HloType) -> Iterator[HloType]:
    """The types that are not tuples, in order."""
    pending = [type]
    while pending:
        match pending.pop():
            case TupleShape(elements):
                pending += reversed(elements)
            case leaf:
                yield leaf


def dtype_name(hlo: str) -> str:
    """XLA's name of a dtype as JAX writes it: `pred` is `bool`, `s32` is `i32`, the others agree."""
    return _NAMES.get(hlo) or _SIGNED.sub(r"i\1", hlo)


def array_type(type: HloType) -> ArrayType:
    """The type without its layout; tuples are joined by commas."""
    match type:
        case ArrayShape(dtype, dims):
            return ArrayType(dtype_name(dtype), tuple(None if dim == UNBOUNDED else dim for dim in dims))
        case TupleShape(elements):
            return ArrayType(f"({', '.join(map(short, elements))})", None)
        case other:
            return ArrayType(str(other), None)


def short(type: HloType) -> str:
    """`f32[8,16]`, without the layout."""
    return str(array_type(type))


def size(types: Iterable[HloType]) -> int | None:
    """Bytes of all the leaves together; None where one is unknown."""
    return total_bytes(array_type(leaf) for type in types for leaf in leaves(type))
