"""SS22: a dimension that is gathered and summed away."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.spellings import KIND_OF
from ...ir.jaxpr_text import EquationPlace
from ...report import Collective, Finding, Fix, Report
from ..fixes.calls import call_at, operand_text, renamed
from ..fixes.edits import axes_text, rewritten, together, without_calls
from ..rule import Rule, Saving, finding
from ..support.blocks import numbers_of, reached
from ..support.compiled import GATHERS, certainty, compiled_to, is_compiled, saved_seconds
from ..support.compiled_from import compiled_as
from ..support.device_values import axis_sizes, devices_along, operands_over
from ..support.jaxpr_flow import At, Flow, Use, equations_of

INSTEAD = {"reduce_sum": ("psum", "sum"), "reduce_max": ("pmax", "max"), "reduce_min": ("pmin", "min")}
"""The collective, and the function of `jnp` for one device's part, by the primitive that reduces."""


TOTALS = ("sum", "max", "min", "amax", "amin")
"""The functions that reduce, where a user calls them."""


def check(report: Report) -> Iterator[Finding]:
    """Each all_gather whose result is only ever reduced over the gathered dimension."""
    for flow, place in equations_of(report, GATHERS):
        for number in range(len(place.equation.outputs)):
            yield from _checked(report, flow, place, number)


def _checked(report: Report, flow: Flow, place: EquationPlace, number: int) -> Iterator[Finding]:
    equation, axes = place.equation, place.equation.axes or ()
    parts = devices_along(axes, axis_sizes(report, flow, place))
    if not axes or parts is None:
        return
    found = reached(flow, At(place.jaxpr, equation.outputs[number].name), _is_reduction)
    (gathered,) = numbers_of(equation, "all_gather_dimension")[:1] or (0,)
    if found is None or parts == 1 or len({use.place.equation.primitive for use in found.ends}) != 1:
        return
    for use in found.ends:
        value = At(use.place.jaxpr, use.place.equation.inputs[0], use.calls)
        dims = numbers_of(use.place.equation, "axes")
        operands = operands_over(flow, use.place)
        if not operands or {held.axis for held in operands[0]} & set(axes):
            return  # each device weighs the blocks in its own way
        if not any(found.dimension(flow, [(value, dim)], parts) == gathered for dim in dims):
            return
    reductions = tuple(dict.fromkeys(use.place for use in found.ends))
    compiled = compiled_as(report, "all-gather", axes, equation.outputs[number].type.array, flow.source(place))
    if not is_compiled(report) or compiled is not None:
        yield _found(report, flow, place, number, reductions, compiled)


def _is_reduction(use: Use) -> bool:
    return use.place.equation.primitive in INSTEAD


def _found(
    report: Report,
    flow: Flow,
    place: EquationPlace,
    number: int,
    reductions: tuple[EquationPlace, ...],
    compiled: Collective | None,
) -> Finding:
    equation, axes = place.equation, place.equation.axes or ()
    collective, local = INSTEAD[reductions[0].equation.primitive]
    call = call_at(report.program, flow.source(place), ("all_gather",))
    operand = operand_text(call, equation.inputs[number])
    is_tiled = dict(equation.params).get("tiled") == "True"
    (gathered,) = numbers_of(equation, "all_gather_dimension")[:1] or (0,)
    inner = f"jnp.{local}({operand}, axis={gathered})" if is_tiled else operand
    text = f"{renamed(call, collective)}({inner}, {axes_text(axes)})"
    totals = without_calls(report.program, map(flow.source, reductions), TOTALS)
    edits = together(rewritten(call, text), totals)
    return finding(
        RULE,
        flow.place(place),
        f"{equation.outputs[number].type.array} is gathered over {', '.join(axes)} and reduced at once:"
        f" {collective} the local {local} instead",
        confidence=certainty(compiled),
        axes=axes,
        related=map(flow.place, reductions),
        evidence=(
            ("reduced by", ", ".join(flow.place(each).what for each in reductions)),
            compiled_to(compiled),
        ),
        fixes=(Fix(f"{text}, without the gather", edits),),
        saves=_saved(report, reductions, compiled),
    )


def _saved(report: Report, reductions: tuple[EquationPlace, ...], compiled: Collective | None) -> Saving:
    """Against one all-reduce of what comes out, for each of the reductions."""
    sizes = [each.equation.outputs[0].type.array.bytes for each in reductions]
    if compiled is None or compiled.wire_bytes is None or None in sizes:
        return Saving()
    size = sum(each for each in sizes if each is not None)
    group = max(map(len, compiled.groups), default=2)
    saved = compiled.wire_bytes - (KIND_OF["all-reduce"].wire_bytes(group, size, size) or 0)
    return Saving(saved, saved_seconds(report, compiled, "all-reduce", size)) if saved > 0 else Saving()


RULE = Rule(
    id="SS22",
    slug="gather-then-reduce",
    severity="warning",
    finds="An all-gather whose gathered dimension is at once summed away.",
    why="Every device receives all blocks, to compute what a psum of its own block's sum gives as well, with a fraction"
    " of the bytes and of the work.",
    proof="All uses of what was gathered are followed: each ends in a reduction over the gathered dimension, of the"
    " same values on all devices. `proved` when the compiled program has the all-gather as well.",
    faulty='jnp.sum(lax.all_gather(x, "x", tiled=True), axis=0)',
    repaired='lax.psum(jnp.sum(x, axis=0), "x")',
    check=check,
    tries="the reduction of each device's own part, and a psum, pmax or pmin of that",
)
