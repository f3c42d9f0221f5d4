"""SS01: a psum of which every device keeps its own block."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...ir.jaxpr_text import EquationPlace
from ...report import Collective, Finding, Fix, Report
from ..fixes.calls import call_at, operand_text, renamed
from ..fixes.edits import axes_text, rewritten
from ..rule import Rule, Saving, finding
from ..support.compiled import (
    SUMS,
    certainty,
    compiled_as,
    compiled_to,
    is_combined,
    is_compiled,
    on_another_target,
    saved_seconds,
)
from ..support.device_values import axis_sizes
from ..support.jaxpr_flow import Flow, equations_of
from ..support.own_block import OwnBlock, own_block, without_slices


def check(report: Report) -> Iterator[Finding]:
    """Each psum all of whose uses, element by element operations aside, are slices at the device's own block."""
    for flow, place in equations_of(report, SUMS):
        for number in range(len(place.equation.outputs)):
            block = own_block(report, flow, place, number)
            if block is not None:
                yield from _found(report, flow, place, number, block)


def _found(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type
    compiled = compiled_as(report, "all-reduce", axes, type, source)
    if is_compiled(report) and (compiled is None or compiled.fused_form is not None):
        return  # the compiler made a reduce-scatter of it, or needs nothing of it
    parts = math.prod(axis_sizes(report, flow, place)[axis] for axis in block.axes)
    target = "CPU never makes a reduce-scatter of this by itself; compile for the real target to see what it does"
    whole = compiled if _is_alone(compiled, block, axes) else None
    yield finding(
        RULE,
        flow.place(place),
        f"every device along {', '.join(axes)} receives the whole sum {type.partition('{')[0]} and keeps one of"
        f" {parts} blocks of it: that is a reduce-scatter",
        confidence=certainty(compiled),
        axes=axes,
        related=map(flow.place, (*block.through, *block.slices)),
        evidence=(block.evidence(parts), compiled_to(compiled, ", then slices"), *on_another_target(report, target)),
        fixes=(_fix(report, flow, place, number, block),),
        saves=Saving(
            None if whole is None or whole.wire_bytes is None else whole.wire_bytes // 2,
            saved_seconds(report, whole, "reduce-scatter"),
        ),
    )


def _is_alone(compiled: Collective | None, block: OwnBlock, axes: tuple[str, ...]) -> bool:
    """Whether a reduce-scatter would do all that the all-reduce does: with half its bytes, as rings go."""
    return compiled is not None and not is_combined(compiled) and set(block.axes) == set(axes)


def _fix(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Fix:
    call = call_at(report.program, flow.source(place), ("psum",))
    if len(place.equation.outputs) > 1:
        call = None  # its operand is not the one of this sum
    operand, name = operand_text(call, place.equation.inputs[number]), renamed(call, "psum_scatter")
    text = f"{name}({operand}, {axes_text(block.axes)}, scatter_dimension={block.dim}, tiled=True)"
    rest = tuple(axis for axis in place.equation.axes or () if axis not in block.axes)
    if rest:
        text = f"{renamed(call, 'psum')}({text}, {rest!r})"
    return without_slices(report, flow, block, f"{text},", rewritten(call, text))


RULE = Rule(
    id="SS01",
    slug="missing-reduce-scatter",
    severity="warning",
    finds="A psum of which every device keeps only its own block: a reduce-scatter that was not written as one.",
    why="An all-reduce sends twice the bytes of a reduce-scatter, and holds the whole sum in memory. Not every"
    " compiler sees that the slice makes the other half unnecessary.",
    proof="The places where the slices begin are evaluated for every device along the axes, and each is that of the"
    " device's own block; nothing else uses the sum, element by element operations aside. `proved` when the compiled"
    " program has the all-reduce as well; silent when the compiler made a reduce-scatter of it.",
    faulty="""total = lax.psum(a @ b, "x")
rows = total.shape[0] // lax.axis_size("x")
return lax.dynamic_slice_in_dim(total, lax.axis_index("x") * rows, rows)""",
    repaired='return lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)',
    check=check,
    tries="psum_scatter in place of psum, and no slice",
)
