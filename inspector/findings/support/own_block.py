"""Collectives of whose results every device seems to keep its own block: which block is enough, a trial decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ....parsers.record import Record
from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...ir.types import ArrayType
from ...report import Certainty, Fix, Report
from ..fixes.edits import Edits, together, without_calls
from .device_values import axis_sizes, devices_along, is_constant, numbers_of, operands_over
from .jaxpr_flow import At, Flow, Use

MAX_DIMENSIONS = 3
"""Dimensions along which a block is tried."""

SLICES = ("dynamic_slice_in_dim", "dynamic_slice", "dynamic_index_in_dim")
"""The functions that slice, where a user calls them."""

IN_BLOCKS = ELEMENTWISE | Does.RESHAPE | Does.REPEAT | Does.REDUCE | Does.CONTRACT
"""Operations of which a block of the result may need no more than a block of the operand."""


class OwnBlock(Record, frozen=True):
    """Each device along `axes` takes one block of what a value becomes, at a place that it computes from its position.

    `dims` are the dimensions of the value that may be split in as many blocks, the likeliest first. Where only
    elementwise operations are in between, it is known which one.
    """

    axes: tuple[str, ...]
    dims: tuple[int, ...]
    slices: tuple[EquationPlace, ...]
    is_known: bool

    @property
    def certainty(self) -> Certainty:
        """Certainty that each device needs this block alone."""
        return "proved" if self.is_known else "likely"

    def evidence(self, parts: int | None = None) -> tuple[str, str]:
        """Return what is kept, as evidence; with the number of parts where it matters."""
        of = "" if parts is None else f" of {parts}"
        return "kept", f"block {' × '.join(self.axes)}{of}, computed for each device"


def own_block(report: Report, flow: Flow, place: EquationPlace, output: int) -> OwnBlock | None:
    """Return the block that slices take, if they are all that becomes of a collective's result, by block-wise steps."""
    axes, sizes = place.equation.axes or (), axis_sizes(report, flow, place)
    result = place.equation.outputs[output]
    reach = forward(flow, [At(place.jaxpr, result.name)], IN_BLOCKS)
    taken = {_taken(flow, use, axes, sizes) for use in reach.ends} if reach.is_all else {None}
    if None in taken or len({along for along, _ in filter(None, taken)}) != 1:
        return None
    along, first = next(filter(None, taken))
    dims = tuple(_dimensions(result.type.array, devices_along(along, sizes) or 1, first))
    is_known = all(flow.does(use) in ELEMENTWISE for use in reach.steps)
    dims = dims[:1] if is_known else dims
    return OwnBlock(along, dims, tuple(use.place for use in reach.ends), is_known) if dims else None


def without_slices(report: Report, flow: Flow, block: OwnBlock, change: str, edits: Edits) -> Fix:
    """A change that gives each device its own block, so that the slices are left out."""
    places = [flow.source(place) for place in block.slices]
    lines = sorted({place.text(report.script) for place in places} - {""})
    where = f" of {', '.join(lines)}" if lines else ""
    left_out = without_calls(report.program, places, SLICES)
    return Fix(f"{change} without the slice{where}", together(edits, left_out))


def _dimensions(type: ArrayType, parts: int, first: int) -> Iterator[int]:
    """The dimensions that may be split in so many parts, the `first` one first."""
    shape = type.shape or ()
    fitting = sorted((dim for dim, size in enumerate(shape) if size % parts == 0), key=lambda dim: dim != first)
    yield from islice(fitting, MAX_DIMENSIONS)


def _taken(flow: Flow, use: Use, axes: Sequence[str], sizes: Mapping[str, int]) -> tuple[tuple[str, ...], int] | None:
    """The axes along which devices slice different parts, as many as there are devices, and the dimension."""
    equation, position = use.place.equation, use.position
    type = flow.type_of(At(use.place.jaxpr, equation.inputs[position], use.calls))
    shape, taken = (type.array.shape if type else None) or (), numbers_of(equation, "slice_sizes")
    smaller = [dim for dim, (have, take) in enumerate(zip(shape, taken, strict=False)) if take < have]
    if equation.primitive not in ("dynamic_slice", "gather") or position != 0 or len(smaller) != 1 or type is None:
        return None
    start = 1 + (smaller[0] if equation.primitive == "dynamic_slice" else 0)
    held = {each.axis for value in operands_over(flow, use.place)[start : start + 1] for each in value}
    along, part = tuple(axis for axis in axes if axis in held), equation.outputs[0].type.array.elements
    is_split = part is not None and type.array.elements == part * (devices_along(along, sizes) or 0)
    is_own = held == {*along} and is_split and is_constant(flow, At(use.place.jaxpr, equation.inputs[start], use.calls))
    return (along, smaller[0]) if is_own else None
