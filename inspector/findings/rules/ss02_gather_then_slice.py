"""SS02: what is gathered for everyone, and of which everyone keeps a part."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ....parsers.sharding_syntax.mesh import AxisRef, join_axes
from ...collectives.spelled import over_text
from ...ir.jaxpr_text import EquationPlace
from ...report import Collective, Finding, FindingPlace, Fix, Report, SourcePosition
from ...shardings.collective_causes import causes_of
from ...units import plural
from ..fixes.calls import call_to_leave_out, of_lax, operand_text
from ..fixes.constraints import CONSTRAINTS, InsertedDetour, inserted_detours
from ..fixes.edits import axes_text, parenthesized, rewritten, together, without_call
from ..rule import Rule, Saving, advice, finding, in_all
from ..support.blocks import numbers_of
from ..support.compiled import GATHERS, certainty, compiled_to, is_compiled, place_in_hlo, saved_seconds, saving
from ..support.compiled_from import compiled_as
from ..support.jaxpr_flow import Flow, equations_of
from ..support.own_block import OwnBlock, own_block, without_slices
from ..support.unformed import Unformed, enough_for, listed, saving_with, used_in_blocks


def check(report: Report) -> Iterator[Finding]:
    """Gathers that were written, those of shardings that come back, then other gathers of the compiled program."""
    lines = set()
    for flow, place in equations_of(report, GATHERS):
        for number in range(len(place.equation.outputs)):
            block = own_block(report, flow, place, number)
            if block is not None:
                lines.add(_line(flow.source(place)))
                yield from _written(report, flow, place, number, block)
    in_blocks = {each.collective: each for each in used_in_blocks(report, "all-gather")}
    groups: dict[object, list[InsertedDetour]] = {}
    for detour in inserted_detours(report, "all-gather"):
        group = groups.get(detour.compiled) or groups.setdefault(detour.blamed, [])
        groups[detour.compiled or detour.blamed] = group
        group.append(detour)
    known = {detour.compiled for group in groups.values() for detour in group}
    for group in {id(group): group for group in groups.values()}.values():
        yield _inserted(report, group, in_blocks)
    for collective, each in in_blocks.items():
        if collective not in known and _line(collective.source) not in lines:
            yield _compiled(report, each)


def _line(source: SourcePosition) -> tuple[str, int] | None:
    return None if source.frame is None else (source.frame.file, source.frame.line)


def _written(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Iterator[Finding]:
    equation, source = place.equation, flow.source(place)
    axes, type = equation.axes or (), equation.outputs[number].type.array
    compiled = compiled_as(report, "all-gather", axes, type, source)
    if is_compiled(report) and compiled is None:
        return
    (gathered,) = numbers_of(equation, "all_gather_dimension")[:1] or (0,)
    along = ", ".join(axes)
    same = gathered == block.dim and block.axes == axes
    what = "its own" if same else "an all-to-all is enough"
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is gathered over {along}, but each device keeps one block: {what}",
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
    call = call_to_leave_out(report.program, flow.source(place), ("all_gather",))
    operand = operand_text(call, place.equation.inputs[number])
    if same:
        change = f"use {operand} itself, without the gather and"
        return without_slices(report, flow, block, change, without_call(report.program, call))
    name, along = of_lax(report.program, call, "all_to_all"), axes_text(block.axes)
    if dict(place.equation.params).get("tiled") == "False":
        value = operand if call is None else parenthesized(operand)
        operand = f"{value}[{':, ' * gathered}None]"  # the gather adds a dimension
    text = f"{name}({operand}, {along}, split_axis={block.dim}, concat_axis={gathered}, tiled=True)"
    return without_slices(report, flow, block, f"{text},", rewritten(report.program, call, text))


def _inserted(report: Report, detours: list[InsertedDetour], in_blocks: Mapping[Collective, Unformed]) -> Finding:
    """The finding of all detours that have a gather or a change in common: it is needless only without all of them."""
    axes: dict[int, dict[AxisRef, None]] = {}
    for each in detours:
        axes.setdefault(each.blamed, {})[each.detour.axis] = None
    places = {each.blamed: each for each in reversed(detours)}
    first, *others = [
        each.finding(
            RULE,
            f"{each.name(each.detour.source)} is sharded over {over}, gathered, and sharded"
            f"{f' over {over}' if len(axes[each.blamed]) == 1 else ''} again for nothing",
            ("uncut", "sharded again at"),
            ", then slices",
        )
        for each in map(places.__getitem__, axes)
        for over in (join_axes(tuple(axes[each.blamed])),)
    ]
    over = dict.fromkeys(axis for every in axes.values() for axis in every)
    saves = _saving(report, {each.compiled for each in detours}, in_blocks)
    first = replace(first, axes=tuple(over), saved_bytes=saves.bytes, saved_seconds=saves.seconds)
    if not others:
        return first
    titles, changes = zip(*((each.fixes[0].title, each.fixes[0].edits) for each in (first, *others)), strict=True)
    title = f"{titles[0]}; the same for {plural(len(others), 'other use')} of this gather"
    related = (*first.related, *(place for each in others for place in (each.place, *each.related)))
    return replace(first, related=related, fixes=(Fix(title, together(*changes)),))


def _saving(report: Report, gathers: Iterable[Collective | None], in_blocks: Mapping[Collective, Unformed]) -> Saving:
    """Return the saving of leaving gathers out; if fewer axes are gathered again, that of the others."""
    return in_all(
        saving_with(report, in_blocks[each], enough_for(report, in_blocks[each]))
        if each is not None and each in in_blocks
        else saving(each, times=None)
        for each in gathers
    )


def _compiled(report: Report, found: Unformed) -> Finding:
    """A gather of the compiled program."""
    collective, axes = found.collective, found.collective.axes or ()
    enough = enough_for(report, found)
    slices = dict.fromkeys(each for used in found.used for each in used.slices)
    return finding(
        RULE,
        place_in_hlo(collective),
        f"all-gather over {over_text(collective)}, of which each device uses only one block"
        + ("" if enough is None else f": {enough.text(report.program.meshes)}{' is enough' if enough.kind else ''}"),
        confidence="proved",
        axes=axes,
        related=(
            FindingPlace(each.name, SourcePosition.exact(each.frames), collective.stage, each.span) for each in slices
        ),
        evidence=listed(report, (found,)),
        fixes=_compiled_fixes(report, collective),
        saves=saving_with(report, found, enough),
    )


def _compiled_fixes(report: Report, collective: Collective) -> tuple[Fix, ...]:
    causes = (each.place for each in causes_of(report.program, collective)[:1] if each.effect == "reshard")
    for place in (collective.source, *causes):
        call = call_to_leave_out(report.program, place, CONSTRAINTS)
        if call is not None:
            return (Fix(f"leave out {ast.unparse(call[1])}", without_call(report.program, call)),)
    return advice("constrain the gathered value to the sharding in which its blocks are used")


RULE = Rule(
    id="SS02",
    slug="gather-then-slice",
    severity="warning",
    finds="An all-gather of which every device uses only one block.",
    why="Every device receives the full value and discards all but one block. The usual cause is a constraint in"
    " between that requests a replicated value nobody needs.",
    proof="For gathers in your code: on every device the slices start at the device's own block, and nothing else uses"
    " the gathered value. For the partitioner's gathers: after propagation a value is sharded over an axis, the"
    " values computed from it dimension by dimension are not, and all of these are sharded over the axis again. In"
    " the compiled program: every use of the result, through elementwise operations, lookups, reshapes, tuples and"
    " loops, is a slice at an offset that is computed per device. `proved` if the compiled program has the"
    " all-gather; not reported if the compiler avoided it.",
    faulty="""whole = lax.with_sharding_constraint(2 * x, P())  # x is P("x")
return lax.with_sharding_constraint(jnp.sin(whole), P("x"))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x"))',
    check=check,
    tries="no gather and no slice, an all_to_all in place of both, or no constraint in between",
)
