"""Types of values, whichever language they were written in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cached_property

from ...parsers.errors import readable
from ...parsers.hlo.types import UNBOUNDED, ArrayShape, HloType, TupleShape, leaves
from ...parsers.mlir.types import MlirType, TensorType
from ...parsers.record import Record
from ...parsers.sharding_syntax.jax_arrays import parse_array_type
from ..units import bytes_of, known_sum

MAX_ELEMENTS = 1 << 63
"""The most elements of an array that are believed; a file may claim more than a float can hold."""


class ArrayType(Record, frozen=True):
    """The dtype of an array, as JAX writes it, and its sizes, None for one that is not known.

    Of what is no array, as a tuple or a token, `dtype` is the text and `dims` is None.
    """

    dtype: str
    dims: tuple[int | None, ...] | None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes; None where one is unknown, where they are beyond belief, and of what is no array."""
        dims = self.dims
        if dims is None or None in dims or math.prod(filter(None, dims)) > MAX_ELEMENTS:
            return None
        return dims  # type: ignore[return-value]

    @property
    def elements(self) -> int | None:
        """Number of elements; None if unknown."""
        return None if (shape := self.shape) is None else math.prod(shape)

    @property
    def bytes(self) -> int | None:
        """The bytes of all elements; None where the shape or the size of the dtype is not known."""
        return None if (shape := self.shape) is None else bytes_of(self.dtype, shape)

    def __str__(self) -> str:
        if self.dims is None:
            return self.dtype
        return f"{self.dtype}[{','.join('?' if dim is None else str(dim) for dim in self.dims)}]"


class JaxType:
    """The type of a value of a jaxpr, with the mesh axes in it, as JAX spells it; `array` is read on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def array(self) -> ArrayType:
        """The dtype and the sizes; of a Ref, those of what it holds."""
        return jax_type(held_text(self.text))

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JaxType) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


_REF = re.compile(r"\ARef(?:<[^<>]*>)?\{(.*)\}(?:\{[^{}]*\})?\Z", re.DOTALL)
"""The type of a mutable array, around the one of what it holds."""


def held_text(text: str) -> str:
    """The spelling of what a Ref holds; of all else its own."""
    return _REF.sub(r"\1", text)


def jax_type(text: str) -> ArrayType:
    """The type that JAX prints so."""
    array = readable(lambda: parse_array_type(text))
    return ArrayType(text, None) if array is None else ArrayType(array.dtype, array.dims)


def is_sharded_type(text: str) -> bool:
    """Return whether a type of JAX's says along which axes its dimensions are sharded: those of an explicit mesh."""
    array = readable(lambda: parse_array_type(held_text(text)))
    return array is not None and any(array.axes)


_NAMES = {"pred": "bool", "i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}
_INTEGER = re.compile(r"(?:s|(u)i)(\d+)")


def dtype_name(name: str) -> str:
    """XLA's or MLIR's name of a dtype as JAX writes it: `pred` is `bool`, `s32` is `i32`, `ui8` is `u8`."""
    integer = _INTEGER.fullmatch(name)
    return f"{integer[1] or 'i'}{integer[2]}" if integer else _NAMES.get(name) or name.lower()


def array_type(type: HloType | MlirType) -> ArrayType:
    """The type without its layout; the elements of a tuple are joined by commas."""
    match type:
        case ArrayShape(dtype, sizes):
            return ArrayType(dtype_name(dtype), tuple(None if size == UNBOUNDED else size for size in sizes))
        case TensorType(dims, element):
            return ArrayType(dtype_name(element), dims)
        case TupleShape(elements):
            return ArrayType(f"({', '.join(str(array_type(each)) for each in elements)})", None)
        case other:
            return ArrayType(str(other), None)


def size(types: Iterable[HloType | MlirType]) -> int | None:
    """Bytes of all of them together; None where those of one are not known."""
    flat = (leaf for type in types for leaf in (leaves(type) if isinstance(type, TupleShape) else (type,)))
    return known_sum(array_type(leaf).bytes for leaf in flat)


def types_text(types: tuple[ArrayType, ...]) -> str:
    """`f32[2,4], i32[]`."""
    return ", ".join(map(str, types))
