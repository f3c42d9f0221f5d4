"""Origins of collectives in the lowered program: the operation's author, pass, line and module.

The jaxpr knows most of it, where an equation's number leads to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation
from ...parsers.mlir.lists import symbol
from ...parsers.record import Record
from ..catalog.spellings import CUSTOM_CALLS, MLIR_OPS, Kind, primitives_of
from ..correspondence.numbers import equations_by_number, spans_of_tags, tags_at
from ..correspondence.positions import frames_at
from ..dataflow.jaxpr import At, JaxprFlow, divides, flow_of, global_flow_of
from ..dataflow.meaning import POINTWISE, SAME, STRAIGHT, Does, does
from ..dataflow.walks import forward
from ..ir.derived import derived
from ..ir.jaxpr import Equation
from ..ir.jaxpr_text import EquationPlace
from ..ir.name_scopes import common_start, keys_of_name, module_of_name, scopes, without_indices
from ..ir.stage import ParsedStage
from ..report import Origin, Pass, SourcePosition
from .origin import direction_of

CUSTOM_CALL = "stablehlo.custom_call"

MAX_VALUES = 300
"""Values that are followed to outputs."""

MAX_PATHS = 16
"""Ways into a body that are looked at."""


_UNREDUCED = re.compile(r"\{(?:[^{}]*, )?U:[^{}]*\}")
"""Axes in a type, as in `f32[64,16]{U:x}`."""


class OperationFacts(Record, frozen=True):
    """`kind` is that of the collective that the operation is, if it is one; the last two as its own."""

    kind: Kind | None
    origin: Origin
    direction: Pass
    source: SourcePosition
    module: tuple[str, ...]
    argument: str | None
    averages: bool = False
    of_gradients: bool = False


class Lowered(Record, frozen=True):
    """The stages before the compiler, and what relates them.

    `equations` are those of `Capture`; `arguments` and `outputs` are the names of the function's.
    """

    stablehlo: ParsedStage | None = None
    jaxpr: ParsedStage | None = None
    equations: bytes = b""
    arguments: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    differentiated: bool = False


def facts_of(lowered: Lowered, number: int) -> OperationFacts | None:
    """Return the facts of the operation of that number; None where there is no StableHLO with numbers."""
    return None if lowered.stablehlo is None else _facts(lowered.stablehlo, lowered, number)


@derived
def _facts(stablehlo: ParsedStage, lowered: Lowered, number: int) -> OperationFacts | None:
    lines = spans_of_tags(stablehlo, (number,))
    if not lines:
        return None
    kind = _kinds(stablehlo).get(number)
    text = None if lowered.jaxpr is None else lowered.jaxpr.jaxpr
    place = None if text is None else equations_by_number(text, lowered.equations).get(number)
    source = SourcePosition.exact(frames_at(stablehlo, lines[0].end - 1))
    if text is None or place is None:
        return OperationFacts(kind, "unknown" if kind is None else "user", "unknown", source, (), None)
    flow = flow_of(text)
    paths = tuple(islice(_paths(flow, place), MAX_PATHS))
    directions = {direction_of(path, differentiated=lowered.differentiated) for path in paths}
    modules = {scopes(path.rpartition("/")[0]) for path in paths}
    direction = directions.pop() if len(directions) == 1 else "unknown"
    argument = _argument(flow, place, lowered.arguments)
    module = modules.pop() if len(modules) == 1 else ()
    module = module or (() if argument is None else module_of_name(argument))
    stack = text.stack(place.equation)
    return OperationFacts(
        kind,
        _origin(kind, place, is_derived=direction != "recompute" and flow.is_backward(place)),
        direction,
        SourcePosition.exact(stack) if len(stack) > len(source.stack) else source,
        module or _of_outputs(flow, place, lowered.outputs),
        argument,
        kind is not None and averages(flow, place),
        kind is not None and is_of_gradients(flow, place),
    )


def _origin(kind: Kind | None, place: EquationPlace, *, is_derived: bool) -> Origin:
    equation = place.equation
    if kind is not None:
        return "autodiff" if is_derived and not equation.in_custom_vjp else "user"
    return (
        "explicit" if equation.primitive == "reshard" or _asks(equation) or _is_unreduced(equation) else "partitioner"
    )


def _is_unreduced(equation: Equation) -> bool:
    """Return whether its results are partial sums by their types, in which Shardy names the requested reduction."""
    return any(_UNREDUCED.search(str(output.type)) for output in equation.outputs)


def _asks(equation: Equation) -> bool:
    """Return whether an `out_sharding` requests anything: JAX writes one in backward passes over axes of any type."""
    out_sharding = dict(equation.params).get("out_sharding", "None")
    return "Explicit" in out_sharding if "axis_types=" in out_sharding else out_sharding != "None"


def _paths(flow: JaxprFlow, place: EquationPlace) -> Iterator[str]:
    waiting: list[tuple[EquationPlace, str]] = [(place, place.equation.primitive)]
    while waiting:
        inner, path = waiting.pop()
        path = "/".join(filter(None, (inner.equation.name_stack, path)))
        callers = flow.callers.get(inner.jaxpr, []) if len(path) < 10_000 else []
        waiting += [(caller, path) for caller in callers]
        if not callers:
            yield f"jit()/{path}"


def _argument(flow: JaxprFlow, place: EquationPlace, names: tuple[str, ...]) -> str | None:
    """The one argument that an equation takes, in whatever form; one with a path before those without."""
    if not flow.jaxprs or len(flow.jaxprs[0].inputs) != len(names):
        return None
    roots = (_root(flow, At(place.jaxpr, name)) for name in place.equation.inputs)
    positions = (None if root is None else flow.positions.get((0, root.name)) for root in roots)
    found = dict.fromkeys(names[position] for position in positions if position is not None)
    nested = [name for name in found if len(keys_of_name(name)) > 1]
    only = nested if len(nested) == 1 else list(found)
    return only[0] if len(only) == 1 else None


def _of_outputs(flow: JaxprFlow, place: EquationPlace, names: tuple[str, ...]) -> tuple[str, ...]:
    """The keys that all outputs have in common in which the result of an equation ends, as gradients in new weights."""
    if (
        not flow.jaxprs
        or len(flow.jaxprs[0].outputs) != len(names)
        or not any(keys_of_name(each)[1:] for each in names)
    ):
        return ()
    made = [At(place.jaxpr, output.name) for output in place.equation.outputs]
    sizes = _sizes(place)
    reach = forward(
        global_flow_of(flow.text),
        made,
        ELEMENTWISE | HANDED_ON,
        keeps=lambda use: _sizes(use.place) <= sizes,
        carried=True,
        limit=MAX_VALUES,
    )
    keys = [keys_of_name(names[output.path[0]])[::-1] for output in reach.outputs]
    found = () if reach.gave_up else without_indices(common_start(each[:-1] for each in keys)[::-1])
    return () if all(key.isdecimal() for key in found) else found


def _sizes(place: EquationPlace) -> set[int | None]:
    return {output.type.array.elements for output in place.equation.outputs}


def _root(flow: JaxprFlow, value: At) -> At | None:
    """The input of the outermost jaxpr that a value is a form of."""
    for _ in range(MAX_STEPS):
        made = flow.made.get((value.jaxpr, value.name))
        if made is None:
            if value.jaxpr == 0:
                return value
            around = flow.outer(value)
            if around is None:
                return None
            value = around
            continue
        place, position = made
        body = flow.body(place)
        if body is not None and position < len(flow.jaxprs[body].outputs):
            value = At(body, flow.jaxprs[body].outputs[position], (*value.calls, place))
        elif place.equation.inputs and is_handed_on(place):
            value = At(place.jaxpr, place.equation.inputs[0], value.calls)
        else:
            return None
    return None


@derived
def _kinds(stablehlo: ParsedStage) -> Mapping[int, Kind]:
    found: dict[int, Kind] = {}
    for operation, kind in () if stablehlo.mlir is None else collective_operations(stablehlo.mlir):
        line = stablehlo.source.line_around(operation.span.end - 1)
        found |= dict.fromkeys(tags_at(stablehlo, line), kind)
    return found


def collective_operations(module: MlirModule) -> Iterator[tuple[Operation, Kind]]:
    """The collectives of a module of MLIR, in text order."""
    calls = any(f"@{target}".encode() in module.source.data for target in CUSTOM_CALLS)
    for operation in module.operations((*MLIR_OPS, *([CUSTOM_CALL] if calls else []))):
        kind = MLIR_OPS.get(operation.name)
        if operation.name == CUSTOM_CALL:
            target = readable(partial(operation.attributes.get, "call_target_name"))
            kind = None if target is None else CUSTOM_CALLS.get(symbol(target))
        if kind is not None:
            yield operation, kind


HANDED_ON = SAME | Does.REPEAT | Does.SLICE
"""Operations whose result is their first operand in another form, or a part of it."""

GATHERS = primitives_of("all-gather")
"""Primitives that bring its blocks together."""

MAX_STEPS = 40
"""Equations that are followed back to an argument."""

ELEMENTWISE = POINTWISE | Does.SUM
"""Operations of optimizers on gradients, and those that sum gradients."""


def is_handed_on(place: EquationPlace, also: Does = STRAIGHT) -> bool:
    """Return whether an equation hands its operand on, in one device's blocks or as a whole, or is of another class."""
    primitive = place.equation.primitive
    return primitive in GATHERS or does(primitive) in HANDED_ON | also


def is_of_gradients(flow: JaxprFlow, place: EquationPlace) -> bool:
    """Return whether all operands are results of a backward pass, in whatever form: XLA may lose the names of these."""
    return bool(place.equation.inputs) and all(
        _is_from_backward(flow, At(place.jaxpr, name)) for name in place.equation.inputs
    )


def _is_from_backward(flow: JaxprFlow, value: At) -> bool:
    def is_last(place: EquationPlace) -> bool:
        return flow.is_backward(place) or not (place.equation.bodies or is_handed_on(place, ELEMENTWISE))

    return any(map(flow.is_backward, islice(flow.makers(value, is_last), MAX_STEPS)))


def averages(flow: JaxprFlow, place: EquationPlace) -> bool:
    """Return whether all uses divide each result of a sum by the number of devices, as `pmean` does."""
    mapped, axes = flow.shard_map_around(place), place.equation.axes
    sizes = {} if mapped is None or mapped.equation.shard_map is None else dict(mapped.equation.shard_map.sizes)
    if axes is None or not sizes.keys() >= set(axes):
        return False
    devices = math.prod(sizes[axis] for axis in axes)
    uses = [flow.used.get((place.jaxpr, output.name), ()) for output in place.equation.outputs]
    return devices > 1 and all(each and all(divides(*use, devices) for use in each) for each in uses)
