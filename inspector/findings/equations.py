"""Equations of a report's jaxpr: the values that devices hold there, sizes of axes, and pairs of permutes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..dataflow.jaxpr import At, JaxprFlow, Use
from ..dataflow.jaxpr import flow_of as flow_of_text
from ..ir.derived import derived
from ..ir.jaxpr import Equation, literal_in
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..report import Report
from ..variance.held import Value
from ..variance.inference import infer

__all__ = ("At", "Flow", "Use")

Flow = JaxprFlow

MAX_STEPS = 10_000
"""Uses that are followed from one value."""

_PAIR = re.compile(r"\((\d{1,9}), (\d{1,9})\)")


def flow_of(report: Report) -> Flow | None:
    """The flow of a report's jaxpr; None where there is none."""
    text = report.program.jaxpr
    return None if text is None else flow_of_text(text)


def is_alone(flow: Flow, use: Use) -> bool:
    """Return whether the other operands of an equation are single numbers, or the same value."""
    names = set(use.place.equation.inputs) - {use.place.equation.inputs[use.position]}
    types = [flow.type_of(At(use.place.jaxpr, name, use.calls)) for name in names if literal_in(name) is None]
    return all(type is not None and type.array.shape == () for type in types)


def equations_of(report: Report, primitives: Collection[str]) -> Iterator[tuple[Flow, EquationPlace]]:
    """The equations of some primitives, in text order, with the flow of their jaxpr."""
    flow = flow_of(report)
    for place in flow.text.equations if flow else ():
        if flow is not None and place.equation.primitive in primitives:
            yield flow, place


def axis_sizes(report: Report, flow: Flow, place: EquationPlace) -> dict[str, int]:
    """The sizes of the mesh axes by name as at an equation: those of the shard_maps around it, else of all meshes.

    An axis that has several of them has none here.
    """
    meshes = report.capture.subject.meshes if report.capture.subject else ()
    everywhere = [(axis.name, axis.size) for mesh in meshes for axis in mesh.axes]
    maps = [each.equation.shard_map for each in flow.around(place)]
    here = [size for each in maps if each is not None for size in each.sizes]
    return _unambiguous(everywhere) | _unambiguous(here)


def _unambiguous(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    sizes: dict[str, set[int]] = {}
    for name, size in pairs:
        sizes.setdefault(name, set()).add(size)
    return {name: size.pop() for name, size in sizes.items() if len(size) == 1}


def devices_along(axes: Iterable[str], sizes: Mapping[str, int]) -> int | None:
    """Return the number of devices along some axes; None where an axis has no known size."""
    axes = tuple(axes)
    return math.prod(sizes[axis] for axis in axes) if all(axis in sizes for axis in axes) else None


def numbers_of(equation: Equation, parameter: str) -> tuple[int, ...]:
    """A parameter that is a tuple of numbers, as `slice_sizes=(4, 16)`; empty where it is something else."""
    parts = dict(equation.params).get(parameter, "").strip("()").replace(" ", "").split(",")
    wanted = [part for part in parts if part]
    return tuple(map(int, wanted)) if all(part.isdecimal() and len(part) < 19 for part in wanted) else ()


def permutation_of(equation: Equation) -> list[tuple[int, int]]:
    """Return the pairs of a ppermute, each from a source to a target."""
    return [(int(a), int(b)) for a, b in _PAIR.findall(dict(equation.params).get("perm", ""))]


def operands_over(flow: Flow, place: EquationPlace) -> tuple[Value, ...]:
    """Return the axes over which each operand may vary; none for an operand outside of any shard_map."""
    return infer(flow.text, "values").operands.get(place.id, ())


def equal_along(flow: Flow, place: EquationPlace) -> tuple[tuple[str, ...], ...]:
    """For each operand of a reduction, those of its axes along which all devices hold the same."""
    axes = place.equation.axes or ()
    differing = ({held.axis for held in value} for value in operands_over(flow, place))
    return tuple(tuple(axis for axis in axes if axis not in along) for along in differing)


def is_unchecked(flow: Flow, place: EquationPlace) -> bool:
    """Return whether an equation stands in a shard_map with its check off."""
    return place.id in infer(flow.text, "values").unchecked


def is_constant(flow: Flow, start: At) -> bool:
    """Return whether a value is computed from literals and devices' indices only: it counts."""
    known = _constants(flow.text)
    waiting, begun = [start], set[At]()
    while waiting:
        at = waiting[-1]
        made_of = () if at in known else _made_of(flow, at)
        unknown = [each for each in made_of or () if each not in known]
        if unknown and at not in begun:
            begun.add(at)
            waiting += unknown
            continue
        if at not in known:
            known[at] = made_of is not None and all(known.get(each, True) for each in made_of)
        waiting.pop()
    return known[start]


@derived
def _constants(text: JaxprText) -> dict[At, bool]:
    """Values known to be constants, or not to be; each is analyzed once."""
    return {}


def _made_of(flow: Flow, at: At) -> Sequence[At] | None:
    """Return the constants that a value is computed from; None for a value that is no constant."""
    made = flow.made.get((at.jaxpr, at.name))
    if made is not None:
        equation = made[0].equation
        return [At(at.jaxpr, name, at.calls) for name in equation.inputs]
    if literal_in(at.name) is not None:
        return ()
    operand = flow.operand(at)
    return None if operand is None else (operand,)
