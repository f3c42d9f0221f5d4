"""SS01: a sum of which every device keeps its own block."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....parsers.sharding_syntax.mesh import AxisRef
from ...collectives.context import context_of
from ...collectives.stage import spelled_collectives
from ...ir.array_sharding import ArraySharding
from ...ir.jaxpr_text import EquationPlace
from ...ir.stage import ParsedStage
from ...ir.types import ArrayType
from ...report import Collective, Finding, FindingPlace, Fix, Pass, Report
from ...report.spelled import over_text
from ...units import plural
from ..blocks import (
    OwnBlock,
    ReturnedSum,
    UsedBlocks,
    listed,
    own_block,
    returned_sums,
    used_blocks,
    used_in_blocks,
    without_slices,
)
from ..compiled import (
    SUMS,
    at_most,
    compiled_as,
    compiled_to,
    is_compiled,
    on_another_target,
    platform_of,
)
from ..equations import Flow, axis_sizes, equations_of
from ..fixes.calls import call_at, call_to_leave_out, name_of, of_lax, operand_text
from ..fixes.constraints import without_constraints
from ..fixes.edits import axes_text, rewritten
from ..fixes.gradients import constrained_gradients, shardings_by_shape
from ..fixes.jits import with_compiler_options
from ..fixes.specs import has_whole_axes, with_out_specs
from ..rule import Rule, advice, finding

REDUCTIONS = ("psum", "pmean")

OFFLOADED = {
    "xla_tpu_enable_sparse_core_collective_offload_reduce_scatter": True,
    "xla_tpu_enable_sparse_core_collective_offload_nd_reduce_scatter": True,
}
"""Options with which libtpu forms reduce-scatters over all axes of a three-dimensional torus, on its SparseCores."""


def check(report: Report) -> Iterator[Finding]:
    """Each psum whose uses, element by element operations aside, are slices at the device's own block.

    Then the compiled all-reduces of which that is true, but for those of the same lines.
    """
    lines = set()
    for flow, place in equations_of(report, SUMS):
        for number in range(len(place.equation.outputs)):
            block = own_block(report, flow, place, number)
            if block is not None:
                for each in _found(report, flow, place, number, block):
                    lines.add((each.place.source.file, each.place.source.line))
                    yield each
    for group in _unformed_groups(report):
        sources = (*(each for one in group for each in one.sources), *(one.collective.source for one in group))
        if not lines & {(place.file, place.line) for place in sources}:
            yield _unformed(report, group)
    returned: dict[object, list[ReturnedSum]] = {}
    for one in returned_sums(report):
        returned.setdefault(one.collective.axes, []).append(one)
    for several in returned.values():
        yield _returned(report, several)


def _returned(report: Report, returned: list[ReturnedSum]) -> Finding:
    """Gradients that are given to all devices whole, of parameters that are sharded."""
    first, platform = returned[0].collective, platform_of(report)
    over, specs = over_text(first), {each.output.name: each.sharding for each in returned}
    collectives = dict.fromkeys(each.collective for each in returned)
    named = ", ".join(f"{spec} for {name}" for name, spec in list(specs.items())[:3])
    more = f", and {plural(len(specs) - 3, 'more')}" if len(specs) > 3 else ""
    is_cpu = platform == "cpu"
    message = (
        f"{returned[0].output.name} is all-reduced over {over} and returned replicated, but"
        f" {returned[0].argument.name} is sharded over it"
        if len(specs) == 1
        else f"{len(specs)} results are all-reduced over {over} and returned replicated; their arguments are sharded"
    )
    return finding(
        RULE,
        FindingPlace(", ".join(each.name for each in collectives), first.source, first.stage, first.span),
        message,
        confidence="likely",
        axes=first.axes or (),
        severity="info" if is_cpu else None,
        evidence=(
            *(
                (each.output.name, f"{each.output.spec}, {each.argument.name} is {each.sharding}")
                for each in returned[:6]
            ),
            *on_another_target(report),
        ),
        fixes=(
            Fix(
                f"jax.jit(…, out_shardings=…) with {named}{more}, if their users accept that",
                with_out_specs(report, specs) if has_whole_axes(specs.values()) else (),
            ),
            *constrained_gradients(report, _sharded_over(report, first.axes or ())),
        ),
        saves=at_most(*collectives),
    )


def _unformed_groups(report: Report) -> Iterator[tuple[UsedBlocks, ...]]:
    """The reduce-scatters that did not form, together where they are over the same axes in the same pass.

    Sums that were combined with others, such as a loss, have no pass of their own: they are with the first ones.
    """
    groups: dict[object, dict[Pass, list[UsedBlocks]]] = {}
    found = sorted(used_in_blocks(report, "all-reduce"), key=lambda each: each.collective.direction == "unknown")
    for each in found:
        passes = groups.setdefault(each.collective.axes, {})
        direction = each.collective.direction
        passes.setdefault(next(iter(passes), direction) if direction == "unknown" else direction, []).append(each)
    yield from (tuple(group) for passes in groups.values() for group in passes.values())


def _unformed(report: Report, group: tuple[UsedBlocks, ...]) -> Finding:
    first = group[0].collective
    axes = first.axes or ()
    over = over_text(first)
    used, summed = sum(len(g.types) for g in group), sum(len(_results(g)) for g in group)
    is_cpu = platform_of(report) == "cpu"
    every = "both" if summed == 2 else f"all {summed:,}"
    which = every if used == summed else f"{used:,} of {summed:,}"
    said = f"{which} sums over {over} are" if summed > 1 else f"the sum over {over} is"
    began = _since(report, first.axes, used)
    sources = [(type.bytes or 0, source) for g in group for type, source in zip(g.types, g.sources, strict=True)]
    source = max(sources, key=lambda pair: pair[0])[1]
    place = FindingPlace(", ".join(each.collective.name for each in group[:6]), source, first.stage, first.span)
    fixes = dict.fromkeys(fix for each in group for fix in without_constraints(report, each.collective))
    return finding(
        RULE,
        place,
        f"{said} all-reduced, but each device uses only its own block",
        confidence="likely",
        axes=axes,
        severity="info" if is_cpu else None,
        evidence=(
            *listed(report, group),
            *(() if began is None else (began,)),
            *on_another_target(report),
        ),
        fixes=(*fixes, *_unformed_fixes(report, first)),
        saves=at_most(*(each.collective for each in group)),
    )


def _results(each: UsedBlocks) -> tuple[ArrayType, ...]:
    return tuple(type for type in each.collective.result_types if type.shape)


def _since(report: Report, axes: tuple[AxisRef, ...] | None, count: int) -> tuple[str, str] | None:
    """The first pass of the compiler after which there are both the sums, `count` of them, and the slices, as evidence.

    Without records of passes, whether that is the partitioner; None where nothing says so.
    """
    program = report.program
    snapshots = [
        (f"the pass {each.name}, {'which' if each.changes else 'or one before it that'}", ParsedStage(each.stage))
        for each in program.capture.passes
    ]
    partitioned = [("the partitioner, which", stage) for stage in program.stages if stage.name == "hlo-spmd"]
    for name, stage in snapshots or partitioned:
        there = spelled_collectives(stage, context_of(program))
        used = (used_blocks(stage, each) for each in there if each.kind == "all-reduce" and each.axes == axes)
        found = sum(len(each.types) for each in used if each is not None)
        if found:
            return "since", f"{name} made {plural(min(found, count), 'all-reduce')} and slices of them"
    return None


def _unformed_fixes(report: Report, first: Collective) -> tuple[Fix, ...]:
    """The changes after which the target's compiler may form reduce-scatters, the likeliest first."""
    gradients = constrained_gradients(report, _sharded_over(report, first.axes or ()))
    match platform_of(report):
        case "cpu":
            return ()
        case "tpu":
            text = ", ".join(f"{name}={value}" for name, value in OFFLOADED.items())
            options = Fix(f"jax.jit(…, compiler_options={{{text}}})", with_compiler_options(report, OFFLOADED))
            return (*gradients, options)
    return (
        *gradients,
        *advice("constrain the summed value, where it is computed, to the sharding in which it is used"),
    )


def _sharded_over(report: Report, axes: tuple[AxisRef, ...]) -> dict[tuple[int, ...], ArraySharding]:
    found = shardings_by_shape(report)
    return {shape: each for shape, each in found.items() if set(axes) & set(each.sharded) and has_whole_axes([each])}


def _found(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock) -> Iterator[Finding]:
    equation = place.equation
    axes, type = equation.axes or (), equation.outputs[number].type.array
    compiled = compiled_as(report, flow, place, "all-reduce", type)
    if is_compiled(report) and (compiled is None or compiled.fused_form is not None):
        return  # the compiler made a reduce-scatter of it, or needs nothing of it
    parts = math.prod(axis_sizes(report, flow, place)[axis] for axis in block.axes)
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is summed over {', '.join(axes)}, but each device keeps only one block of it",
        confidence=block.certainty if compiled is not None else "likely",
        axes=axes,
        related=map(flow.place, block.slices),
        evidence=(block.evidence(parts), compiled_to(compiled, ", then slices"), *on_another_target(report)),
        fixes=tuple(_fix(report, flow, place, number, block, dim) for dim in block.dims),
        saves=at_most(compiled),
    )


def _fix(report: Report, flow: Flow, place: EquationPlace, number: int, block: OwnBlock, dim: int) -> Fix:
    program, source = report.program, flow.source(place)
    inner, call = call_at(program, source, REDUCTIONS), call_to_leave_out(program, source, REDUCTIONS)
    if len(place.equation.outputs) > 1:
        inner = call = None  # its operand is not the one of this sum
    function = "psum" if inner is None else name_of(inner[1].func)
    operand, name = operand_text(call, place.equation.inputs[number]), of_lax(program, call, "psum_scatter")
    mapped = place.equation.name_stack.count("vmap(")  # dimensions that the code in it does not see, mostly in front
    text = f"{name}({operand}, {axes_text(block.axes)}, scatter_dimension={max(dim - mapped, 0)}, tiled=True)"
    if function == "pmean":
        text = f"({text} / {of_lax(program, call, 'axis_size')}({axes_text(block.axes)}))"
    rest = tuple(axis for axis in place.equation.axes or () if axis not in block.axes)
    if rest:
        text = f"{of_lax(program, call, function)}({text}, {rest!r})"
    return without_slices(report, flow, block, f"{text},", rewritten(program, call, text))


RULE = Rule(
    id="SS01",
    slug="missing-reduce-scatter",
    severity="warning",
    finds="A sum over devices of which each device uses only its own block: a reduce-scatter that was not written, or"
    " that the compiler did not form.",
    why="An all-reduce sends twice the bytes of a reduce-scatter and keeps the full sum in memory. Not every compiler"
    " recognizes that the slice makes the other half unnecessary.",
    proof="Slices are all that becomes of the sum, in the jaxpr or in the compiled program, through fusions, tuples and"
    " loops, and their start indices are computed from the device's position. Whether a block is enough for what is in"
    " between, the trial decides. Not reported if the compiler made a reduce-scatter of it. The CPU compiler forms"
    " none: on CPUs the severity is `info`.",
    faulty="""total = lax.psum(a @ b, "x")
rows = total.shape[0] // lax.axis_size("x")
return lax.dynamic_slice_in_dim(total, lax.axis_index("x") * rows, rows)""",
    repaired='return lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)',
    check=check,
    tries="psum_scatter instead of psum and the slice; no constraint in between; gradients constrained to the"
    " shardings of their parameters, or out_shardings with these; on TPUs, the compiler's options for reduce-scatters",
)
