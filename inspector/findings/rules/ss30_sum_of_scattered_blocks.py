"""SS30: a reduction of blocks that a reduce-scatter has given to different devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...catalog.spellings import functions_of
from ...dataflow.meaning import ELEMENTWISE
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report
from ..fixes.calls import Call, call_to_leave_out, name_of, of_lax, operand_text
from ..fixes.edits import Edits, axes_text, parenthesized, rewritten, together, without_call
from ..fixes.invariance import CASTS
from ..rule import Rule, finding
from ..support.compiled import SUMS, saving
from ..support.compiled_from import SCATTERS, sum_compiled_as
from ..support.device_values import axis_sizes
from ..support.jaxpr_flow import At, Flow, equations_of, flow_of
from ..support.scattered_blocks import gives_rows, reductions_of_blocks

MAX_SCATTERS = 4
"""Reduce-scatters that a finding points at."""

REDUCTIONS = (*SUMS, *SCATTERS, "pmax", "pmin", "pmax_invariant", "pmin_invariant")


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
        saves=saving(None if rest else sum_compiled_as(report, flow, place, position), combined=False),
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
