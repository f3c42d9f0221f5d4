"""Shardy's and GSPMD's attributes of an operation, an argument or a result.

What is there but cannot be read raises ParseError, with its place in the text, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..sharding_syntax import gspmd
from .lists import unquote
from .sdy import Sharding
from .sdy_parser import (
    parse_axes,
    parse_axis_lists,
    parse_each_origins,
    parse_each_propagation,
    parse_exchanges,
    parse_propagation,
    parse_sharding,
    parse_sharding_rule,
    parse_shardings,
)
from .text import MlirText

T = TypeVar("T")


class Annotation(Generic[T]):
    """The value of the first of some attributes that is there, read when it is asked for; None if there is none."""

    def __init__(self, parse: Callable[[str], T], *keys: str) -> None:
        self._parse = parse
        self._keys = keys

    def __get__(self, owner: Annotations, _: type[Annotations] | None = None) -> T | None:
        value = next((owner.attributes[key] for key in self._keys if key in owner.attributes), None)
        return None if value is None else owner.text.read(value, self._parse, owner.start)


def _parse_gspmd(text: str) -> gspmd.Sharding | None:
    # A serialized one, which JAX wrote once, is not read.
    return gspmd.parse_sharding(unquote(text)) if text.startswith('"{') else None


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(axis.name for axis in parse_axes(text))


@dataclass(frozen=True)
class Annotations:
    """The attributes of one operation, argument or result that are about sharding.

    `start` is an offset in the text from which on they are found.
    """

    text: MlirText = field(repr=False)
    attributes: Mapping[str, str]
    start: int

    shardings = Annotation(parse_shardings, "sdy.sharding")
    """Sharding of each result of an operation, or of the one argument or result."""
    gspmd_sharding = Annotation(_parse_gspmd, "mhlo.sharding")
    """The sharding in HLO's syntax."""
    target = Annotation(parse_sharding, "sharding", "out_sharding")
    """Sharding that a constraint, a reshard or a collective of Shardy gives to its operand."""
    in_shardings = Annotation(parse_shardings, "in_shardings")
    """Shardings of a manual computation's operands."""
    out_shardings = Annotation(parse_shardings, "out_shardings")
    """Shardings of a manual computation's results."""
    manual_axes = Annotation(_parse_names, "manual_axes")
    """The mesh axes along which the body of a manual computation sees one device's part."""
    reduction_axes = Annotation(parse_axes, "reduction_axes")
    """The mesh axes along which `sdy.all_reduce` reduces."""
    axes_of_dims = Annotation(parse_axis_lists, "gathering_axes", "slicing_axes", "reduce_scatter_axes")
    """For each dimension the mesh axes along which `sdy.all_gather`, `all_slice` or `reduce_scatter` works."""
    exchanges = Annotation(parse_exchanges, "params")
    """Exchanges of `sdy.all_to_all`."""
    sharding_rule = Annotation(parse_sharding_rule, "sdy.sharding_rule")
    """Relation between the dimensions of operands and results."""
    origin_name = Annotation(unquote, "sdy.sharding_origin_name")
    """The name by which `origins` refer to this constraint or manual computation."""
    origins = Annotation(parse_each_origins, "sdy.sharding_origins", "sdy.result_sharding_origins")
    """For each of `shardings`, where its axes come from."""
    block_argument_origins = Annotation(parse_each_origins, "sdy.block_arg_sharding_origins")
    """For each argument of a region, where its axes come from."""
    propagation = Annotation(parse_propagation, "sdy.propagation_edges")
    """Effects of propagation on the operands and results of an operation."""
    result_propagation = Annotation(parse_each_propagation, "sdy.result_propagation_edges")
    """For each result of an operation with regions, what propagation did between it and what it comes from."""
    block_argument_propagation = Annotation(parse_each_propagation, "sdy.block_arg_propagation_edges")
    """The same for each argument of a region."""

    @property
    def sharding(self) -> Sharding | None:
        """The first of `shardings`."""
        return next(iter(self.shardings or ()), None)
