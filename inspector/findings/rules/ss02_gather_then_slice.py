"""SS02: what is gathered for everyone, and of which everyone keeps a part."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, Fix, Report
from ...shardings.dataflow import Dataflow
from ...shardings.explained import wording_of
from ...shardings.table import propagated
from ..fixes.calls import call_at, operand_text, renamed
from ..fixes.constraints import detour_fix
from ..fixes.edits import rewritten, without_call
from ..rule import Rule, finding
from ..support.compiled import GATHERS, compiled_as, is_compiled, saved_seconds
from ..support.detours import Detour, detours
from ..support.inserted import inserted_for
from ..support.jaxpr_flow import Flow, equations_of
from ..support.own_block import OwnBlock, own_block, without_slices
from ..support.shapes import numbers_of


def check(report: Report) -> Iterator[Finding]:
    """Gathers that were written, then those that the partitioner makes of shardings that come back."""
    for flow, place in equations_of(report, GATHERS):
        for number in range(len(place.equation.outputs)):
            block = own_block(report, flow, place, number)
            if block is not None:
                yield from _written(report, flow, place, number, block)
    _, shardings = propagated(report.program)
    for detour in detours(report.program):
        if shardings is not None and detour.elsewhere is None:
            yield from _inserted(report, shardings, detour)


def _written(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type
    compiled = next(compiled_as(report, "all-gather", axes, type, source), None)
    if is_compiled(report) and compiled is None:
        return
    (gathered,) = numbers_of(equation, "all_gather_dimension")[:1] or (0,)
    along = ", ".join(axes)
    same = gathered == block.dim and block.axes == axes
    what = "that is the block that it sent" if same else "an all-to-all sends no more than that"
    yield finding(
        RULE,
        flow.place(place),
        f"every device along {along} receives {type.partition('{')[0]} and keeps its own block along dimension"
        f" {block.dim}: {what}",
        confidence="likely" if compiled is None else "proved",
        axes=axes,
        related=tuple(map(flow.place, (*block.through, *block.slices))),
        evidence=(
            ("kept", f"block {' × '.join(block.axes)} along dimension {block.dim}, computed for each device"),
            ("compiled to", "not compiled" if compiled is None else f"{compiled.kind} {compiled.name}, then slices"),
        ),
        fixes=(_fix(report, flow, place, number, block, gathered, same=same),),
        saved_bytes=compiled.wire_bytes if compiled is not None and same else None,
        saved_seconds=None
        if compiled is None
        else compiled.estimate.seconds
        if same and compiled.estimate is not None
        else saved_seconds(report, compiled, "all-to-all"),
    )


def _fix(
    report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock, gathered: int, *, same: bool
) -> Fix:
    call = call_at(report.program, flow.source(place), ("all_gather",))
    operand = operand_text(call, place.equation.inputs[number])
    if same:
        change = f"use {operand} itself, without the gather and"
        return without_slices(report, flow, block, change, without_call(report.program, call))
    along = repr(block.axes[0]) if len(block.axes) == 1 else repr(block.axes)
    text = (
        f"{renamed(call, 'all_to_all')}({operand}, {along}, split_axis={block.dim}, concat_axis={gathered}, tiled=True)"
    )
    return without_slices(report, flow, block, f"{text},", rewritten(call, text))


def _inserted(report: Report, flow: Dataflow, detour: Detour) -> Iterator[Finding]:
    gather = inserted_for(report, flow, detour.nodes, "all-gather", detour.axis.name)
    if is_compiled(report) and gather is None:
        return
    wording, axis = wording_of(flow), str(detour.axis)
    change = detour_fix(report, flow, detour)
    yield finding(
        RULE,
        change.place,
        f"{wording.name(detour.source)} is cut along {axis}, gathered here, and cut along {axis} again:"
        " nothing in between needs all of it",
        confidence="likely" if gather is None else "proved",
        axes=(detour.axis.name,),
        related=change.related,
        evidence=(
            ("uncut", ", ".join(wording.name(node) for node, _ in detour.nodes[:6])),
            ("cut again at", ", ".join(wording.places.operation(row)[0] for row in detour.back[:6])),
            ("compiled to", "not compiled" if gather is None else f"{gather.kind} {gather.name}, then slices"),
        ),
        fixes=(change.fix,),
        saved_bytes=None if gather is None else gather.wire_bytes,
        saved_seconds=None if gather is None or gather.estimate is None else gather.estimate.seconds,
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
