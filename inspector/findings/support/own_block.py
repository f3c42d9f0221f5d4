"""Collectives of whose results every device seems to keep its own block: which block is enough, a trial decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations

from ....parsers.record import Record
from ...dataflow.device_integers import Numbers, coordinates, position
from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...ir.types import ArrayType
from ...report import Certainty, Fix, Report
from ..fixes.edits import Edits, together, without_calls
from .device_values import axis_sizes, devices_along, numbers_of
from .jaxpr_flow import At, Flow, Use

MAX_DEVICES = 1 << 12
"""Along the axes; for more, nothing is said."""

MAX_DIMENSIONS = 3
"""Dimensions along which a block is tried."""

SLICES = ("dynamic_slice_in_dim", "dynamic_slice", "dynamic_index_in_dim")
"""The functions that slice, where a user calls them."""

IN_BLOCKS = ELEMENTWISE | Does.RESHAPE | Does.REPEAT | Does.REDUCE | Does.CONTRACT
"""Operations of which a block of the result may need no more than a block of the operand."""


class OwnBlock(Record, frozen=True):
    """Each device along `axes`, major to minor, takes block `position along them` of what a value becomes.

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
    if not axes or not 0 < (devices_along(axes, sizes) or 0) <= MAX_DEVICES:
        return None
    result = place.equation.outputs[output]
    reach = forward(flow, [At(place.jaxpr, result.name)], IN_BLOCKS)
    taken = [_taken(flow, use, axes, sizes) for use in reach.ends] if reach.is_all else []
    if not taken or None in taken or len({each[0] for each in taken if each is not None}) != 1:
        return None
    along, first = next(each for each in taken if each is not None)
    dims = tuple(_dimensions(result.type.array, math.prod(sizes[axis] for axis in along), first))
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
    """The axes along which a slice takes the device's own block, and the dimension of what it slices."""
    equation, rows = use.place.equation, use.place.equation.inputs[1:]
    type = flow.type_of(At(use.place.jaxpr, equation.inputs[use.position], use.calls))
    shape, taken = (type.array.shape if type else None) or (), numbers_of(equation, "slice_sizes")
    smaller = [dim for dim, (have, take) in enumerate(zip(shape, taken, strict=False)) if take < have]
    if equation.primitive not in ("dynamic_slice", "gather") or use.position != 0 or len(smaller) != 1:
        return None
    (dim,), length, size = smaller, 1, taken[smaller[0]]
    start: At | None = At(use.place.jaxpr, rows[dim if len(rows) == len(shape) else 0], use.calls)
    if equation.primitive == "gather" and start is not None:
        numbers = flow.type_of(start)
        length = (numbers.array.elements if numbers else None) or 0
        parts = _parts(flow, start)
        if parts:  # one slice, as `vmap` makes of a dynamic_slice
            start, length = parts[dim if len(parts) == len(shape) else 0], 1
        size *= length
    devices = list(coordinates(axes, sizes))
    starts = [None if start is None else Numbers(flow, sizes, each, length).value(start) for each in devices]
    for along in _orders(axes, sizes, shape[dim], size):
        if starts == [position(each, along, sizes) * size for each in devices]:
            return along, dim
    return None


def _parts(flow: Flow, numbers: At) -> list[At]:
    """The numbers that a list is put together of; none where it is made otherwise."""
    made = flow.made.get((numbers.jaxpr, numbers.name))
    is_list = made is not None and made[0].equation.primitive == "concatenate"
    return [At(numbers.jaxpr, name, numbers.calls) for name in made[0].equation.inputs] if made and is_list else []


def _orders(axes: Sequence[str], sizes: Mapping[str, int], whole: int, size: int) -> Iterator[tuple[str, ...]]:
    for count in range(1, len(axes) + 1):
        for along in permutations(axes, count):
            if math.prod(sizes[axis] for axis in along) * size == whole:
                yield along
