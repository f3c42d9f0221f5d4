"""Values of which every device keeps its own block and nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from ....parsers.record import Record
from ...dataflow.device_integers import Numbers, coordinates
from ...ir.jaxpr_text import EquationPlace
from ...report import Fix, Report
from ..fixes.edits import Edits, together, without_calls
from .blocks import numbers_of, reached
from .device_values import axis_sizes, devices_along
from .jaxpr_flow import At, Flow, Use

MAX_DEVICES = 1 << 12
"""Along the axes; for more, nothing is said."""

MAX_ROWS = 64
"""Maximum number of computed rows."""

DIMENSIONS = "dimension_numbers"

SLICES = ("dynamic_slice_in_dim", "dynamic_slice", "dynamic_index_in_dim")
"""The functions that slice, where a user calls them."""

_START = re.compile(r"start_index_map=\(((?:[^()]|\([^()]*\))*)\)")
"""`(0,)`, or `(np.int64(1), np.int64(2))`."""


class OwnBlock(Record, frozen=True):
    """Each device along `axes`, major to minor, keeps block `position along them` of dimension `dim`."""

    axes: tuple[str, ...]
    dim: int
    slices: tuple[EquationPlace, ...]
    through: tuple[EquationPlace, ...]

    def evidence(self, parts: int | None = None) -> tuple[str, str]:
        """Return what is kept, as evidence; with the number of parts where it matters."""
        of = "" if parts is None else f" of {parts}"
        return "kept", f"block {' × '.join(self.axes)}{of} along dimension {self.dim}, computed for each device"


def own_block(report: Report, flow: Flow, place: EquationPlace, output: int) -> OwnBlock | None:
    """Return whether every use of a collective's result, up to operations on blocks, keeps the device's own block."""
    axes = place.equation.axes or ()
    sizes = axis_sizes(report, flow, place)
    if not axes or not 0 < (devices_along(axes, sizes) or 0) <= MAX_DEVICES:
        return None
    found = reached(flow, At(place.jaxpr, place.equation.outputs[output].name), _is_slice)
    if found is None:
        return None
    kept = [_kept(flow, use, axes, sizes) for use in found.ends]
    if None in kept or len({each[0] for each in kept if each is not None}) != 1:
        return None
    along = next(each[0] for each in kept if each is not None)
    cut = [(_operand(use), each[1]) for use, each in zip(found.ends, kept, strict=True) if each is not None]
    dim = found.dimension(flow, cut, math.prod(sizes[axis] for axis in along))
    return None if dim is None else OwnBlock(along, dim, tuple(use.place for use in found.ends), found.through)


def without_slices(report: Report, flow: Flow, block: OwnBlock, change: str, edits: Edits) -> Fix:
    """A change that gives each device its own block, so that the slices are left out."""
    places = [flow.source(place) for place in block.slices]
    lines = sorted({place.text(report.script) for place in places} - {""})
    where = f" of {', '.join(lines)}" if lines else ""
    left_out = without_calls(report.program, places, SLICES)
    return Fix(f"{change} without the slice{where}", together(edits, left_out))


def _is_slice(use: Use) -> bool:
    return use.place.equation.primitive in ("dynamic_slice", "gather") and use.position == 0


def _operand(use: Use) -> At:
    return At(use.place.jaxpr, use.place.equation.inputs[use.position], use.calls)


class _Taken(Record, frozen=True):
    """The `size` rows of `whole` in dimension `dim` that a slice takes, starting or listed in `rows`."""

    dim: int
    whole: int
    size: int
    rows: At
    is_list: bool


def _kept(flow: Flow, use: Use, axes: Sequence[str], sizes: Mapping[str, int]) -> tuple[tuple[str, ...], int] | None:
    """Along which axes, and of which dimension, a slice is one's own block."""
    taken = _taken(flow, use)
    if taken is None or not taken.size or taken.whole % taken.size:
        return None
    devices = list(coordinates(axes, sizes))
    length = taken.size if taken.is_list else 1
    tried = range(0, length, -(-length // MAX_ROWS))
    numbers = [
        [Numbers(flow, sizes, device, length, element).value(taken.rows) for element in tried] for device in devices
    ]
    if any(None in each for each in numbers):
        return None
    for along in _orders(axes, sizes, taken.whole // taken.size):
        first = [_position(along, at, sizes) * taken.size for at in devices]
        if all(each == [begin + element for element in tried] for each, begin in zip(numbers, first, strict=True)):
            return along, taken.dim
    return None


def _shape(flow: Flow, value: At) -> tuple[int, ...] | None:
    type = flow.type_of(value)
    return None if type is None else type.array.shape


def _taken(flow: Flow, use: Use) -> _Taken | None:
    equation = use.place.equation
    shape = _shape(flow, _operand(use)) or ()
    sizes, rows = numbers_of(equation, "slice_sizes"), equation.inputs[1:]
    if len(shape) != len(sizes):
        return None
    smaller = [dim for dim, (have, take) in enumerate(zip(shape, sizes, strict=True)) if take < have]
    if len(smaller) != 1:
        return None
    (dim,) = smaller
    if equation.primitive == "dynamic_slice":
        start = rows[dim] if len(rows) == len(shape) else ""
        return _Taken(dim, shape[dim], sizes[dim], At(use.place.jaxpr, start, use.calls), is_list=False)
    numbers = At(use.place.jaxpr, rows[0], use.calls)
    known, along = _shape(flow, numbers), _START.search(dict(equation.params).get(DIMENSIONS, ""))
    starts = [] if along is None else [int(each) for each in re.findall(r"\b\d{1,3}\b", along[1])]
    if known is None or dim not in starts:
        return None
    if len(known) == 1:  # one slice, as `vmap` makes of a dynamic_slice
        first = numbers if known == (1,) else _one_of(flow, numbers, starts.index(dim))
        return None if first is None else _Taken(dim, shape[dim], sizes[dim], first, is_list=False)
    if known[-1:] != (1,) or starts != [dim] or sizes[dim] != 1:
        return None
    return _Taken(dim, shape[dim], math.prod(known), numbers, is_list=True)


def _one_of(flow: Flow, numbers: At, index: int) -> At | None:
    """One of several numbers that are put together."""
    made = flow.made.get((numbers.jaxpr, numbers.name))
    if made is None or made[0].equation.primitive != "concatenate":
        return None
    parts = made[0].equation.inputs
    return At(numbers.jaxpr, parts[index], numbers.calls) if len(parts) > index else None


def _orders(axes: Sequence[str], sizes: Mapping[str, int], parts: int) -> Iterator[tuple[str, ...]]:
    for count in range(1, len(axes) + 1):
        for along in permutations(axes, count):
            if math.prod(sizes[axis] for axis in along) == parts:
                yield along


def _position(along: Sequence[str], at: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    position = 0
    for axis in along:
        position = position * sizes[axis] + at[axis]
    return position
