"""Shapes and sizes of the values of a jaxpr."""

from __future__ import annotations

import math

from ....parsers.errors import ParseError
from ....parsers.sharding_syntax.jax_arrays import parse_array_type
from ...ir.jaxpr import Equation
from ...units import bytes_of


def shape_of(type: str) -> tuple[int, ...] | None:
    """The shape in a type as JAX prints it; None of what is no array, or has a size that is no number."""
    try:
        return parse_array_type(type).shape
    except ParseError:
        return None


def elements_of(type: str) -> int | None:
    """How many elements an array of that type has; None where that is not known."""
    shape = shape_of(type)
    return None if shape is None else math.prod(shape)


def type_bytes(type: str) -> int | None:
    """The bytes of an array of that type; None where they are not known."""
    try:
        array = parse_array_type(type)
    except ParseError:
        return None
    return None if array.shape is None else bytes_of(array.dtype, array.shape)


def numbers_of(equation: Equation, parameter: str) -> tuple[int, ...]:
    """A parameter that is a tuple of numbers, as `slice_sizes=(4, 16)`; empty where it is something else."""
    parts = dict(equation.params).get(parameter, "").strip("()").replace(" ", "").split(",")
    wanted = [part for part in parts if part]
    return tuple(map(int, wanted)) if all(part.isdecimal() and len(part) < 19 for part in wanted) else ()
