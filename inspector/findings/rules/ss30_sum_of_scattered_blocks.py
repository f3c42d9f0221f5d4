"""SS30: a reduction of blocks that a reduce-scatter has given to different devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from ...catalog.spellings import functions_of
from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report
from ..compiled import REDUCTIONS, SCATTERS, at_most, sum_compiled_as
from ..equations import At, Flow, Use, axis_sizes, equations_of, flow_of, operands_over
from ..fixes.calls import Call, call_to_leave_out, name_of, of_lax, operand_text
from ..fixes.edits import Edits, axes_text, parenthesized, rewritten, together, without_call
from ..fixes.invariance import CASTS
from ..rule import Rule, finding

MAX_SCATTERS = 4
"""Reduce-scatters that a finding points at."""


class _Mixed(NamedTuple):
    """A reduction of blocks, the number of its operand, and the axes over which they had been scattered."""

    place: EquationPlace
    position: int
    axes: tuple[str, ...]


def check(report: Report) -> Iterator[Finding]:
    """Each reduction over an axis of what reduce-scatters gave over it, but for those of a backward pass."""
    scatters: dict[tuple[str, ...], list[EquationPlace]] = {}
    flow = flow_of(report)
    if flow is None:
        return
    for _, place in equations_of(report, SCATTERS):
        axes, sizes = place.equation.axes or (), axis_sizes(report, flow, place)
        if all(sizes.get(axis, 1) > 1 for axis in axes) and gives_rows(flow, place):
            scatters.setdefault(axes, []).append(place)
    found = set[_Mixed]()
    for axes, places in scatters.items():
        for use, its in reductions_of_blocks(flow, places, axes, REDUCTIONS).items():
            shared = tuple(axis for axis in use.place.equation.axes or () if axis in axes)
            mixed = _Mixed(use.place, use.position, shared)
            if shared and mixed not in found and not flow.is_backward(use.place):
                found.add(mixed)
                yield _found(report, flow, mixed, its)


def _found(report: Report, flow: Flow, mixed: _Mixed, scatters: list[EquationPlace]) -> Finding:
    place, position, axes = mixed
    equation, over = place.equation, ", ".join(axes)
    rest = tuple(axis for axis in equation.axes or () if axis not in axes)
    call = call_to_leave_out(report.program, flow.source(place), functions_of("all-reduce", "reduce-scatter"))
    name = equation.primitive.removesuffix("_invariant") if call is None else name_of(call[1].func)
    return finding(
        RULE,
        flow.place(place),
        f"{name} over {over} of blocks that a reduce-scatter has given to devices along {over}",
        confidence="likely",
        axes=axes,
        related=map(flow.place, scatters[:MAX_SCATTERS]),
        evidence=(
            ("operand", f"{equation.inputs[position]}: along {over} each device has another block of the sum"),
            ("result", "block 0 of the sum and block 1 and block 2 … combined, in the shape of one block"),
        ),
        fixes=(_fix(report, flow, mixed, call, rest),),
        saves=at_most(sum_compiled_as(report, flow, place, position)),
    )


def _fix(report: Report, flow: Flow, mixed: _Mixed, call: Call | None, rest: tuple[str, ...]) -> Fix:
    """The blocks themselves; of a mean, divided by the number of devices, as the reduce-scatter gave their sum."""
    program, place = report.program, mixed.place
    operand = operand_text(call, place.equation.inputs[mixed.position])
    if rest:
        return Fix(f"reduce {operand} over {', '.join(rest)} only")
    if call is None or len(place.equation.inputs) > 1:
        return Fix(f"use {operand} itself, whose blocks are summed already")
    title, edits = f"use {operand} itself, whose blocks are summed already", without_call(program, call)
    if name_of(call[1].func) == "pmean":
        size = f"{of_lax(program, call, 'axis_size')}({axes_text(place.equation.axes or ())})"
        mean = f"{parenthesized(operand)} / {size}"
        title, edits = f"use {mean}, as the blocks are sums over the devices", rewritten(program, call, mean)
    casts = tuple(_casts_back(report, flow, place, mixed.position))
    return Fix(title, together(edits, *casts) if casts else edits)


def _casts_back(report: Report, flow: Flow, place: EquationPlace, position: int) -> Iterator[Edits]:
    """Without the casts of the reduction's result to what varies: the blocks do."""
    result = At(place.jaxpr, place.equation.outputs[position].name)
    reach = forward(flow, [result], ELEMENTWISE, keeps=lambda use: use.place.equation.primitive not in CASTS)
    for use in reach.ends:
        if use.place.equation.primitive in CASTS:
            yield without_call(report.program, call_to_leave_out(report.program, flow.source(use.place), CASTS))


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


RULE = Rule(
    id="SS30",
    slug="sum-of-scattered-blocks",
    severity="error",
    finds="A reduction over an axis of blocks that a reduce-scatter has given to the devices along this axis.",
    why="The blocks are different parts of one sum, such as rows of a gradient. A further psum or pmean adds up rows"
    " that have nothing to do with each other, and every device goes on with the same wrong block. Shapes and types"
    " match, so nothing rejects it. all_gather is transposed to a reduce-scatter: the gradients of gathered parameters"
    " are summed already.",
    proof="The operand is followed back to the reduce-scatter through elementwise operations whose other operands are"
    " equal along the axis, or blocks as well. Not reported for blocks of one row, whose sum is a sum of rows, nor in"
    " a backward pass that JAX wrote.",
    faulty="""grads = jax.grad(loss)(shards, batch)  # loss gathers the shards: lax.all_gather(w, "x", tiled=True)
grads = jax.tree.map(lambda g: lax.pmean(g, "x"), grads)""",
    repaired="""grads = jax.grad(loss)(shards, batch)
grads = jax.tree.map(lambda g: g / lax.axis_size("x"), grads)""",
    check=check,
    is_observation=True,
    of_gradients=True,
    tries="the blocks without the reduction; in place of a mean, their quotient by the number of devices",
)
