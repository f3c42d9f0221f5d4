"""Blocks that reduce-scatters give to different devices, followed to the reductions of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from .device_values import operands_over
from .jaxpr_flow import At, Flow, Use

"""Operations after which a block is still a block."""

MAX_ROUNDS = 16


def gives_rows(flow: Flow, place: EquationPlace) -> bool:
    """Return whether each device gets several rows: a sum of single rows is a sum along the dimension."""
    equation, parameters = place.equation, dict(place.equation.params)
    dim, shape = parameters.get("scatter_dimension", ""), equation.outputs[0].type.array.shape
    is_tiled = parameters.get("tiled", "True") == "True"
    return is_tiled and shape is not None and dim.isdecimal() and int(dim) < len(shape) and shape[int(dim)] > 1


def reductions_of_blocks(
    flow: Flow, scatters: Iterable[EquationPlace], axes: Collection[str], reductions: Collection[str]
) -> dict[Use, list[EquationPlace]]:
    """Return the reductions of blocks, each with the scatters from which elementwise operations and loops lead there.

    Other operands on the way are such blocks as well, or equal along the axes: of what a mask chooses by device, a
    reduction is intended. Where one is not, the value is refused, and so is what is made of it alone.
    """
    starts = {At(place.jaxpr, place.equation.outputs[0].name): place for place in scatters}
    refused, bad = set[At](), set[At]()
    for _ in range(MAX_ROUNDS):
        blocks, _, made = _reached(flow, starts, reductions, refused)
        bad = {after for after, use in made if not _is_of_blocks(flow, use, blocks, axes)}
        bad |= {value for value in blocks if not _begins_equal(flow, value, blocks, axes)}
        if not bad:
            break
        refused |= bad
    found: dict[Use, list[EquationPlace]] = {}
    for start, place in () if bad else starts.items():
        for use in _reached(flow, [start], reductions, refused)[1]:
            found.setdefault(use, []).append(place)
    return found


def _reached(
    flow: Flow, starts: Iterable[At], reductions: Collection[str], refused: set[At]
) -> tuple[set[At], list[Use], list[tuple[At, Use]]]:
    """The values that are made of blocks, the reductions of them, and each value with the operation that gives it."""
    reach = forward(flow, starts, ELEMENTWISE | Does.RESHAPE, carried=True, refused=refused)
    ends = [use for use in reach.ends if use.place.equation.primitive in reductions]
    made = [(after, use) for use in reach.steps for after in flow.after(use) if after not in refused]
    return set(reach.values), ends, made


def _is_of_blocks(flow: Flow, use: Use, blocks: set[At], axes: Collection[str]) -> bool:
    """Return whether all operands are blocks, or equal along the axes."""
    names = use.place.equation.inputs
    varying = operands_over(flow, use.place) or ((),) * len(names)
    return all(
        At(use.place.jaxpr, name, use.calls) in blocks or not {held.axis for held in value} & {*axes}
        for name, value in zip(names, varying, strict=False)
    )


def _begins_equal(flow: Flow, value: At, blocks: set[At], axes: Collection[str]) -> bool:
    """Return whether what a loop carries begins as blocks, or as something equal along the axes."""
    names = [variable.name for variable in flow.jaxprs[value.jaxpr].inputs]
    if value.name not in names:
        return True
    position = names.index(value.name)
    for call in value.calls[-1:] or flow.callers.get(value.jaxpr, ()):
        loop, operands = call.equation.loop, operands_over(flow, call)
        if call.equation.primitive == "scan" and loop is not None and loop[0] <= position < sum(loop):
            begin = At(call.jaxpr, call.equation.inputs[position], value.calls[:-1])
            varying = operands[position] if position < len(operands) else ()
            if begin not in blocks and {held.axis for held in varying} & {*axes}:
                return False
    return True
