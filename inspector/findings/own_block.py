"""Values of which every device keeps its own block and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from ..collectives.table import rule_of
from ..jaxpr import Equation
from ..jaxpr_text import EquationPlace
from ..report import Report
from .axis_sizes import axis_sizes
from .device_index import Numbers
from .jaxpr_flow import MOST_STEPS, At, Flow, Use
from .shapes import numbers_of, shape_of

MOST_DEVICES = 1 << 12
"""Along the axes; for more, nothing is said."""

ELEMENTWISE = frozenset(
    [
        "abs",
        "add",
        "and",
        "atan2",
        "cbrt",
        "ceil",
        "clamp",
        "convert_element_type",
        "copy",
        "cos",
        "cosh",
        "div",
        "eq",
        "erf",
        "erf_inv",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "ge",
        "gt",
        "imag",
        "integer_pow",
        "is_finite",
        "le",
        "log",
        "log1p",
        "logistic",
        "lt",
        "max",
        "min",
        "mul",
        "name",
        "ne",
        "neg",
        "nextafter",
        "not",
        "or",
        "pow",
        "real",
        "reduce_precision",
        "rem",
        "round",
        "rsqrt",
        "select_n",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "stop_gradient",
        "sub",
        "tan",
        "tanh",
        "xor",
    ]
)
"""What gives element i of its result from the elements i of its operands, so that a block may be taken first."""


@dataclass(frozen=True, slots=True)
class OwnBlock:
    """Each device along `axes`, major to minor, keeps block `position along them` of dimension `dim`."""

    axes: tuple[str, ...]
    dim: int
    slices: tuple[EquationPlace, ...]
    through: tuple[EquationPlace, ...]


def own_block(report: Report, flow: Flow, place: EquationPlace, output: int) -> OwnBlock | None:
    """Whether all that is done with a collective's result, element by element aside, is to keep one's own block."""
    axes = place.equation.axes or ()
    sizes = axis_sizes(report)
    if not axes or any(axis not in sizes for axis in axes) or math.prod(sizes[a] for a in axes) > MOST_DEVICES:
        return None
    ends = _ends(flow, At(place.jaxpr, place.equation.outputs[output].name))
    if ends is None:
        return None
    slices, through = ends
    kept = {_kept(flow, use, axes, sizes) for use in slices}
    if len(kept) != 1 or (found := kept.pop()) is None:
        return None
    along, dim = found
    return OwnBlock(along, dim, tuple(use.place for use in slices), through)


def _ends(flow: Flow, start: At) -> tuple[list[Use], tuple[EquationPlace, ...]] | None:
    """The slices that the value goes to, and what it goes through; None where it goes anywhere else."""
    waiting, seen = [start], {start}
    slices: list[Use] = []
    through: list[EquationPlace] = []
    while waiting:
        for use in flow.uses(waiting.pop()):
            if len(seen) > MOST_STEPS or use is None:
                return None
            if isinstance(use, Use):
                if use.place.equation.primitive == "dynamic_slice" and use.position == 0:
                    slices.append(use)
                    continue
                if not _is_elementwise(use.place.equation):
                    return None
                through.append(use.place)
                use = At(use.place.jaxpr, use.place.equation.outputs[0].name, use.calls)
            if use not in seen:
                seen.add(use)
                waiting.append(use)
    return (slices, tuple(dict.fromkeys(through))) if slices else None


def _is_elementwise(equation: Equation) -> bool:
    rule = rule_of(equation.primitive)
    if rule is not None:
        return rule.is_cast
    return equation.primitive in ELEMENTWISE and len(equation.outputs) == 1


def _kept(flow: Flow, use: Use, axes: Sequence[str], sizes: Mapping[str, int]) -> tuple[tuple[str, ...], int] | None:
    """Along which axes, and of which dimension, a slice is one's own block."""
    equation = use.place.equation
    operand, *starts = equation.inputs
    taken = numbers_of(equation, "slice_sizes")
    type = flow.type_of(At(use.place.jaxpr, operand, use.calls))
    whole = None if type is None else shape_of(type)
    if whole is None or len(whole) != len(taken) or len(starts) != len(taken):
        return None
    smaller = [dim for dim, (have, take) in enumerate(zip(whole, taken, strict=True)) if take < have]
    if len(smaller) != 1 or not taken[smaller[0]] or whole[smaller[0]] % taken[smaller[0]]:
        return None
    (dim,) = smaller
    parts, start = whole[dim] // taken[dim], At(use.place.jaxpr, starts[dim], use.calls)
    devices = [dict(zip(axes, at, strict=True)) for at in product(*(range(sizes[axis]) for axis in axes))]
    begins = [Numbers(flow, sizes, device).value(start) for device in devices]
    if None in begins:
        return None
    for along in _orders(axes, sizes, parts):
        if all(begin == _position(along, at, sizes) * taken[dim] for at, begin in zip(devices, begins, strict=True)):
            return along, dim
    return None


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
