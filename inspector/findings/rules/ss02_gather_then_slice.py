"""SS02: what is gathered for everyone, and of which everyone keeps a part."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report
from ..fixes.calls import call_at, operand_text, renamed
from ..fixes.constraints import InsertedDetour, inserted_detours
from ..fixes.edits import axes_text, rewritten, without_call
from ..rule import Rule, Saving, finding
from ..support.blocks import numbers_of
from ..support.compiled import GATHERS, certainty, compiled_as, compiled_to, is_compiled, saved_seconds, saving
from ..support.jaxpr_flow import Flow, equations_of
from ..support.own_block import OwnBlock, own_block, without_slices


def check(report: Report) -> Iterator[Finding]:
    """Gathers that were written, then those that the partitioner makes of shardings that come back."""
    for flow, place in equations_of(report, GATHERS):
        for number in range(len(place.equation.outputs)):
            block = own_block(report, flow, place, number)
            if block is not None:
                yield from _written(report, flow, place, number, block)
    yield from map(_inserted, inserted_detours(report, "all-gather"))


def _written(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type
    compiled = compiled_as(report, "all-gather", axes, type, source)
    if is_compiled(report) and compiled is None:
        return
    (gathered,) = numbers_of(equation, "all_gather_dimension")[:1] or (0,)
    along = ", ".join(axes)
    same = gathered == block.dim and block.axes == axes
    what = "the one that it sent" if same else "an all-to-all is enough"
    yield finding(
        RULE,
        flow.place(place),
        f"{type.partition('{')[0]} is gathered over {along}, but each device keeps only its own block: {what}",
        confidence=certainty(compiled),
        axes=axes,
        related=map(flow.place, (*block.through, *block.slices)),
        evidence=(block.evidence(), compiled_to(compiled, ", then slices")),
        fixes=(_fix(report, flow, place, number, block, gathered, same=same),),
        saves=saving(compiled) if same else Saving(None, saved_seconds(report, compiled, "all-to-all")),
    )


def _fix(
    report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock, gathered: int, *, same: bool
) -> Fix:
    call = call_at(report.program, flow.source(place), ("all_gather",))
    operand = operand_text(call, place.equation.inputs[number])
    if same:
        change = f"use {operand} itself, without the gather and"
        return without_slices(report, flow, block, change, without_call(report.program, call))
    name, along = renamed(call, "all_to_all"), axes_text(block.axes)
    text = f"{name}({operand}, {along}, split_axis={block.dim}, concat_axis={gathered}, tiled=True)"
    return without_slices(report, flow, block, f"{text},", rewritten(call, text))


def _inserted(found: InsertedDetour) -> Finding:
    name, axis = found.name, found.detour.axis
    return found.finding(
        RULE,
        f"{name(found.detour.source)} is sharded over {axis}, gathered, and sharded over {axis} again for nothing",
        ("uncut", "cut again at"),
        ", then slices",
    )


RULE = Rule(
    id="SS02",
    slug="gather-then-slice",
    severity="warning",
    finds="An all-gather of which every device keeps only its own block.",
    why="Everything travels to everyone, and all but one part of it is thrown away. Mostly a constraint in between asks"
    " for whole copies that nothing needs.",
    proof="Written out: the slices begin, on every device, at the device's own block, and nothing else uses what was"
    " gathered. By the partitioner: after propagation a value is cut along an axis, what is made of it dimension by"
    " dimension is not, and all of that is cut along the axis again. `proved` when the compiled program has the"
    " all-gather as well; silent when the compiler did without it.",
    faulty="""whole = lax.with_sharding_constraint(2 * x, P())  # x is P("x")
return lax.with_sharding_constraint(jnp.sin(whole), P("x"))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x"))',
    check=check,
    tries="no gather and no slice, an all_to_all in place of both, or no constraint in between",
)
