"""SS02: what is gathered for everyone, and of which everyone keeps a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...ir.jaxpr_text import EquationPlace
from ...report import Finding, FindingPlace, Fix, Report, SourcePosition
from ...report.spelled import over_text
from ...shardings.collective_causes import causes_of
from ..blocks import OwnBlock, UsedBlocks, gathers_in_blocks, listed, own_block, without_slices
from ..compiled import GATHERS, at_most, compiled_as, compiled_to, is_compiled, place_in_hlo
from ..equations import Flow, equations_of, numbers_of
from ..fixes.calls import call_to_leave_out, of_lax, operand_text
from ..fixes.constraints import without_constraints
from ..fixes.edits import axes_text, parenthesized, rewritten, without_call
from ..fixes.in_specs import split_inputs
from ..rule import Rule, advice, finding

ADVICE = "constrain the gathered value to the sharding in which its blocks are used"

OF_OTHERS = "send by lax.ppermute the part that is used, if it is that of a device at a fixed distance"


def check(report: Report) -> Iterator[Finding]:
    """Gathers that were written, then other gathers of the compiled program."""
    lines = set()
    for flow, place in equations_of(report, GATHERS):
        for number in range(len(place.equation.outputs)):
            block = own_block(report, flow, place, number)
            if block is not None:
                lines.add((flow.source(place).file, flow.source(place).line))
                yield from _written(report, flow, place, number, block)
    groups: dict[tuple[object, bool, tuple[Fix, ...]], list[UsedBlocks]] = {}
    used = list(gathers_in_blocks(report))
    of_inputs = _of_inputs(report, used)
    for each in used:
        if (each.collective.source.file, each.collective.source.line) not in lines:
            text = OF_OTHERS if each.is_of_others else ADVICE
            fixes = without_constraints(report, each.collective) or of_inputs.get(each.collective.name) or advice(text)
            groups.setdefault((each.collective.axes, each.is_of_others, fixes), []).append(each)
    for (_, _, fixes), group in groups.items():
        yield _compiled(report, group, fixes)


def _written(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Iterator[Finding]:
    equation = place.equation
    axes, type = equation.axes or (), equation.outputs[number].type.array
    compiled = compiled_as(report, flow, place, "all-gather", type)
    if is_compiled(report) and compiled is None:
        return
    (gathered,) = numbers_of(equation, "all_gather_dimension")[:1] or (0,)
    along = ", ".join(axes)
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is gathered over {along}, but each device keeps one block",
        confidence=block.certainty if compiled is not None else "likely",
        axes=axes,
        related=map(flow.place, block.slices),
        evidence=(block.evidence(), compiled_to(compiled, ", then slices")),
        fixes=tuple(
            _without(report, flow, place, number, block)
            if block.axes == axes and dim == gathered
            else _exchanged(report, flow, place, number, block, dim)
            for dim in block.dims
        ),
        saves=at_most(compiled),
    )


def _without(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Fix:
    call = call_to_leave_out(report.program, flow.source(place), ("all_gather",))
    change = f"use {operand_text(call, place.equation.inputs[number])} itself, without the gather and"
    return without_slices(report, flow, block, change, without_call(report.program, call))


def _exchanged(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock, dim: int) -> Fix:
    call = call_to_leave_out(report.program, flow.source(place), ("all_gather",))
    operand = operand_text(call, place.equation.inputs[number])
    (gathered,) = numbers_of(place.equation, "all_gather_dimension")[:1] or (0,)
    if dict(place.equation.params).get("tiled") == "False":
        value = operand if call is None else parenthesized(operand)
        operand = f"{value}[{':, ' * gathered}None]"  # the gather adds a dimension
    name, along = of_lax(report.program, call, "all_to_all"), axes_text(block.axes)
    text = f"{name}({operand}, {along}, split_axis={dim}, concat_axis={gathered}, tiled=True)"
    return without_slices(report, flow, block, f"{text},", rewritten(report.program, call, text))


def _of_inputs(report: Report, used: Iterable[UsedBlocks]) -> dict[str, tuple[Fix, ...]]:
    """By names of gathers, the change of inputs that shard_maps take whole to slice them: of one axis all together."""
    sliced: dict[tuple[str, ...], list[UsedBlocks]] = {}
    for each in used:
        axes = each.collective.axes or ()
        names = tuple(axis.name for axis in axes if axis.sub is None)
        if not each.is_of_others and len(names) == len(axes) and split_inputs(report.program, each.sources, names):
            sliced.setdefault(names, []).append(each)
    return {
        each.collective.name: fixes
        for names, alike in sliced.items()
        for fixes in (split_inputs(report.program, [source for each in alike for source in each.sources], names),)
        for each in alike
    }


def _compiled(report: Report, group: list[UsedBlocks], fixes: tuple[Fix, ...]) -> Finding:
    """Gathers of the compiled program over the same axes, with the same fixes."""
    gathers = [each.collective for each in group]
    first, over = gathers[0], over_text(gathers[0])
    slices = dict.fromkeys(each for one in group for slices in one.slices for each in slices)
    is_part = len(group[0].types) < len(first.part_types)  # of what was combined: it is there for others, too
    causes = () if is_part else causes_of(report.program, first)
    moved = next((cause.moved.value for cause in causes if cause.moved is not None), None)
    # A gather may have the line of the caller, or that of the value that it moves.
    sources = (*(cause.place for cause in causes), *(() if is_part else (first.source,)), *group[0].sources)
    nearest = max(sources, key=lambda each: len(each.stack))
    place = replace(place_in_hlo(first), source=nearest)
    what = f"{moved} is all-gathered" if moved is not None else "all-gather"
    used = "parts of others" if group[0].is_of_others else "one block"
    return finding(
        RULE,
        place,
        f"{what} over {over}, of which each device uses only {used}",
        confidence="likely",
        axes=first.axes or (),
        subject="" if moved is None else str(moved),
        related=(
            *(place_in_hlo(each) for each in gathers[1:]),
            *(FindingPlace(each.name, SourcePosition.exact(each.frames), first.stage, each.span) for each in slices),
        ),
        evidence=(*listed(report, group), *(compiled_to(each, ", then slices") for each in gathers)),
        fixes=fixes,
        saves=at_most(*gathers),
    )


RULE = Rule(
    id="SS02",
    slug="gather-then-slice",
    severity="warning",
    finds="An all-gather of which every device uses only one block.",
    why="Every device receives the full value and discards all but one block. The usual cause is a constraint in"
    " between that requests a replicated value nobody needs.",
    proof="Slices at offsets that are computed from the device's position are all that becomes of the gathered value,"
    " in the jaxpr or in the compiled program: through elementwise operations, lookups, reshapes, tuples and loops."
    " Whether a block is enough for what is in between, the trial decides. Not reported if the compiler avoided the"
    " all-gather.",
    faulty="""whole = lax.with_sharding_constraint(2 * x, P())  # x is P("x")
return lax.with_sharding_constraint(jnp.sin(whole), P("x"))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x"))',
    check=check,
    tries="no gather and no slice, an all_to_all in place of both, no constraint in between, or an in_spec over the"
    " axis and no slice",
)
