"""MLIR's tensor types in JAX's spelling, and their sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...parsers.mlir.types import MlirType, TensorType
from .types import ArrayType, total_bytes

_NAMES = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}
_UNSIGNED = re.compile(r"ui(\d+)")


def dtype_name(element: str) -> str:
    """MLIR's name of an element type as JAX writes it: `i1` is `bool`, `ui8` is `u8`, `f8E4M3FN` is `f8e4m3fn`."""
    return _NAMES.get(element) or _UNSIGNED.sub(r"u\1", element.lower())


def array_type(type: MlirType) -> ArrayType:
    """The type in JAX's spelling; other types as they are written."""
    match type:
        case TensorType(dims, element):
            return ArrayType(dtype_name(element), dims)
        case other:
            return ArrayType(str(other), None)


def short(type: MlirType) -> str:
    """`f32[8,16]`; other types as they are written."""
    return str(array_type(type))


def size(types: Iterable[MlirType]) -> int | None:
    """Bytes of all of them together; None where one is unknown."""
    return total_bytes(map(array_type, types))
