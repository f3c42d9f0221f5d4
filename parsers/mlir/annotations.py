"""What Shardy and GSPMD say of an operation, an argument or a result, in its attributes.

What is there but cannot be read raises ParseError, with its place in the text, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ..sharding_syntax import gspmd
from ..sharding_syntax.mesh import AxisRef
from .lists import unquote
from .sdy import Exchange, Origins, PropagationStep, Sharding, ShardingRule
from .sdy_parser import (
    AxisLists,
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
_AXES_OF_DIMS = ("gathering_axes", "slicing_axes", "reduce_scatter_axes")


@dataclass(frozen=True)
class Annotations:
    """The attributes of one operation, argument or result that are about sharding.

    `start` is an offset in the text from which on they are found.
    """

    text: MlirText = field(repr=False)
    attributes: Mapping[str, str]
    start: int

    @property
    def shardings(self) -> tuple[Sharding, ...] | None:
        """`sdy.sharding`: of each result of an operation, or of the one argument or result."""
        return self._read("sdy.sharding", parse_shardings)

    @property
    def sharding(self) -> Sharding | None:
        """The first of `shardings`."""
        return next(iter(self.shardings or ()), None)

    @property
    def gspmd_sharding(self) -> gspmd.Sharding | None:
        """`mhlo.sharding` in HLO's syntax. A serialized one, which JAX wrote once, is not read."""
        text = self.attributes.get("mhlo.sharding", "")
        return self._read("mhlo.sharding", _gspmd) if text.startswith('"{') else None

    @property
    def target(self) -> Sharding | None:
        """What a constraint, a reshard or a collective of Shardy makes of its operand."""
        key = "sharding" if "sharding" in self.attributes else "out_sharding"
        return self._read(key, parse_sharding)

    @property
    def in_shardings(self) -> tuple[Sharding, ...] | None:
        """How a manual computation wants its operands."""
        return self._read("in_shardings", parse_shardings)

    @property
    def out_shardings(self) -> tuple[Sharding, ...] | None:
        """How a manual computation leaves its results."""
        return self._read("out_shardings", parse_shardings)

    @property
    def manual_axes(self) -> tuple[str, ...] | None:
        """The mesh axes along which the body of a manual computation sees one device's part."""
        axes = self._read("manual_axes", parse_axes)
        return None if axes is None else tuple(axis.name for axis in axes)

    @property
    def reduction_axes(self) -> tuple[AxisRef, ...] | None:
        """The mesh axes along which `sdy.all_reduce` reduces."""
        return self._read("reduction_axes", parse_axes)

    @property
    def axes_of_dims(self) -> AxisLists | None:
        """For each dimension the mesh axes along which `sdy.all_gather`, `all_slice` or `reduce_scatter` works."""
        key = next((key for key in _AXES_OF_DIMS if key in self.attributes), "")
        return self._read(key, parse_axis_lists)

    @property
    def exchanges(self) -> tuple[Exchange, ...] | None:
        """What `sdy.all_to_all` does."""
        return self._read("params", parse_exchanges)

    @property
    def sharding_rule(self) -> ShardingRule | None:
        """How the dimensions of operands and results belong together."""
        return self._read("sdy.sharding_rule", parse_sharding_rule)

    @property
    def origin_name(self) -> str | None:
        """The name by which `origins` refer to this constraint or manual computation."""
        return self._read("sdy.sharding_origin_name", unquote)

    @property
    def origins(self) -> tuple[Origins, ...] | None:
        """For each of `shardings`, where its axes come from."""
        key = "sdy.sharding_origins" if "sdy.sharding_origins" in self.attributes else "sdy.result_sharding_origins"
        return self._read(key, parse_each_origins)

    @property
    def block_argument_origins(self) -> tuple[Origins, ...] | None:
        """For each argument of a region, where its axes come from."""
        return self._read("sdy.block_arg_sharding_origins", parse_each_origins)

    @property
    def propagation(self) -> tuple[PropagationStep, ...] | None:
        """What propagation did between the operands and results of an operation."""
        return self._read("sdy.propagation_edges", parse_propagation)

    @property
    def result_propagation(self) -> tuple[tuple[PropagationStep, ...], ...] | None:
        """For each result of an operation with regions, what propagation did between it and what it comes from."""
        return self._read("sdy.result_propagation_edges", parse_each_propagation)

    @property
    def block_argument_propagation(self) -> tuple[tuple[PropagationStep, ...], ...] | None:
        """The same for each argument of a region."""
        return self._read("sdy.block_arg_propagation_edges", parse_each_propagation)

    def _read(self, key: str, parse: Callable[[str], T]) -> T | None:
        value = self.attributes.get(key)
        return None if value is None else self.text.read(value, parse, self.start)


def _gspmd(text: str) -> gspmd.Sharding:
    return gspmd.parse_sharding(unquote(text))
