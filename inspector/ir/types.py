"""Types of values, whichever language they were written in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ...parsers.errors import readable
from ...parsers.sharding_syntax.jax_arrays import parse_array_type
from ..units import bytes_of


@dataclass(frozen=True, slots=True)
class ArrayType:
    """The dtype of an array, as JAX writes it, and its sizes, None for one that is not known.

    Of what is no array, as a tuple or a token, `dtype` is the text and `dims` is None.
    """

    dtype: str
    dims: tuple[int | None, ...] | None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes; None where one is unknown, and of what is no array."""
        known = tuple(dim for dim in self.dims or () if dim is not None)
        return known if self.dims is not None and len(known) == len(self.dims) else None

    @property
    def elements(self) -> int | None:
        """How many elements there are; None where that is not known."""
        return None if self.shape is None else math.prod(self.shape)

    @property
    def bytes(self) -> int | None:
        """The bytes of all elements; None where the shape or the size of the dtype is not known."""
        return None if self.shape is None else bytes_of(self.dtype, self.shape)

    def __str__(self) -> str:
        if self.dims is None:
            return self.dtype
        return f"{self.dtype}[{','.join('?' if dim is None else str(dim) for dim in self.dims)}]"


def jax_type(text: str) -> ArrayType:
    """The type that JAX prints so."""
    array = readable(lambda: parse_array_type(text))
    return ArrayType(text, None) if array is None else ArrayType(array.dtype, array.dims)


def total_bytes(types: Iterable[ArrayType]) -> int | None:
    """The bytes of all of them together; None where those of one are not known."""
    sizes = [type.bytes for type in types]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def types_text(types: tuple[ArrayType, ...]) -> str:
    """`f32[2,4], i32[]`."""
    return ", ".join(map(str, types))
