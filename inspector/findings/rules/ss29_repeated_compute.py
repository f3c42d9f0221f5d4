"""SS29: matrix products that several devices compute from the same values."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ....parsers.hlo import Instruction
from ....parsers.sharding_syntax.mesh import AxisRef, join_axes
from ...correspondence.numbers import equations_by_number, tags_in
from ...correspondence.rows import rows_by_tag
from ...cost.places import machine_of
from ...cost.products import Product, products_of
from ...dataflow.meaning import Does, does
from ...ir.types import array_type
from ...report import Finding, FindingPlace, Fix, Report, SourcePosition
from ...shardings.recorded import sharding_at
from ...shardings.table import propagated
from ...units import format_count, format_seconds
from ..equations import flow_of, operands_over
from ..fixes.calls import name_of, nodes_of, own_files
from ..fixes.constraints import replicated_by, resharded
from ..fixes.edits import axes_text, instead
from ..fixes.specs import SPECS
from ..rule import MAX_ALTERNATIVES, Rule, Saving, advice, finding

MIN_REPEATED_FLOPS = 1 << 20
"""Operations of a device in one run that another one does as well."""

MIN_SHARE = 0.1
"""Minimum share of all matrix product operations in one run."""


class _Product(NamedTuple):
    """A product, and its operations on a device in one run, of which `repeated` would be less if none did the same."""

    instruction: Instruction
    flops: int
    runs: int
    repeated: float


def check(report: Report) -> Iterator[Finding]:
    """The products that devices along some axes repeat, those along the same axes together."""
    products = products_of(report.program)
    total = sum(each.flops for each in products)
    least = report.thresholds.get(RULE.id, MIN_REPEATED_FLOPS)
    groups: dict[tuple[AxisRef, ...], list[_Product]] = {}
    for each, unused in unused_axes(report, products) if total >= least else ():
        if unused:
            repeated = each.flops * (1 - 1 / math.prod(unused.values()))
            key = tuple(map(AxisRef, unused))
            groups.setdefault(key, []).append(_Product(each.instruction, each.flops, each.runs, repeated))
    for axes, found in groups.items():
        repeated = sum(each.repeated for each in found)
        if repeated >= max(least, MIN_SHARE * total):
            yield _found(report, axes, found, repeated, total)


def _found(report: Report, axes: tuple[AxisRef, ...], products: list[_Product], repeated: float, total: int) -> Finding:
    largest = max(products, key=lambda each: each.repeated)
    frames, over = largest.instruction.frames, join_axes(axes)
    several = f"{len(products)} matmuls are" if len(products) > 1 else "a matmul is"
    place = FindingPlace(largest.instruction.name, SourcePosition.exact(frames), "hlo-spmd", largest.instruction.span)
    shapes = {array_type(type).shape for each in products for type in each.instruction.operand_types if type}
    replicated, machine = dict(replicated_by(report, shapes)), machine_of(report.program)
    seconds = None if machine is None else repeated / machine.chip.figure("flops")
    return finding(
        RULE,
        place,
        f"{several} repeated by all devices along {over}: shares would save {repeated / total:.0%} of a device's FLOPs",
        confidence="proved",
        axes=axes,
        related=replicated,
        evidence=(*_listed(report, products), _amount(repeated, total, seconds)),
        fixes=(
            *islice(_resharded(report, axes, shapes), MAX_ALTERNATIVES),
            *dict.fromkeys(replicated.values()),
            *islice(sharded_inputs(report, axes), MAX_ALTERNATIVES),
            *advice(
                f"shard an operand over {over}, often in its batch dimension, unless that communication takes longer"
                " than it saves"
            ),
        ),
        saves=Saving(None, seconds),
    )


def _listed(report: Report, products: list[_Product]) -> Iterator[tuple[str, str]]:
    lines: dict[str, Counter[str]] = {}
    for each in sorted(products, key=lambda each: -each.repeated):
        where = SourcePosition.exact(each.instruction.frames).text(report.script) or "no line known"
        taken = " · ".join(str(array_type(type)) for type in each.instruction.operand_types[:2] if type is not None)
        lines.setdefault(where, Counter())[taken] += each.runs
    for where, texts in list(lines.items())[:6]:
        yield where, "; ".join(f"{count} × {text}" for text, count in texts.most_common(4))


def _amount(repeated: float, total: int, seconds: float | None) -> tuple[str, str]:
    at_peak = "" if seconds is None else f", {format_seconds(seconds)} at the peak rate"
    return "more than once", f"{format_count(int(repeated))} of {format_count(total)} FLOP on each device{at_peak}"


def _resharded(report: Report, axes: tuple[AxisRef, ...], shapes: Collection[tuple[int, ...] | None]) -> Iterator[Fix]:
    names, sizes = tuple(axis.name for axis in axes), [dict(mesh.axes) for mesh in report.meshes]
    mesh = next((each for each in sizes if set(names) <= set(each)), None)
    return iter(()) if mesh is None else resharded(report, shapes, names, math.prod(mesh[name] for name in names))


def sharded_inputs(report: Report, axes: tuple[AxisRef, ...]) -> Iterator[Fix]:
    """Yield the change of each `P()` among the in_specs to one over the axes: last arguments first, often the batch."""
    if not axes or any(axis.sub is not None for axis in axes):
        return
    names = axes_text(tuple(axis.name for axis in axes))
    for file in dict.fromkeys(own_files(report.program)):
        for number, spec in _replicated(list(nodes_of(report.program, file))):
            text = f"{ast.unparse(spec.func)}({names})"
            yield Fix(
                f"shard argument {number} of the shard_map: {text} in its in_specs, if it holds the examples",
                instead((file, spec), text),
            )


def _replicated(nodes: list[ast.AST]) -> Iterator[tuple[int, ast.Call]]:
    """The specs of whole values that are written among in_specs, each with its position."""
    for node in nodes:
        match node:
            case ast.keyword(arg="in_specs", value=ast.Tuple(elts=specs)):
                calls = [(number, spec) for number, spec in enumerate(specs) if isinstance(spec, ast.Call)]
                yield from ((number, spec) for number, spec in reversed(calls) if _is_whole(spec))
            case ast.keyword(arg="in_specs", value=ast.Call() as spec) if _is_whole(spec):
                yield 0, spec


def _is_whole(spec: ast.Call) -> bool:
    return name_of(spec.func) in SPECS and not spec.args and not spec.keywords


def unused_axes(report: Report, products: Sequence[Product]) -> Iterator[tuple[Product, dict[str, int]]]:
    """The mesh axes, with their sizes, over which nothing that a product takes or gives is sharded.

    In a shard_map, those over which its operands do not vary.
    """
    program = report.program
    stage, flow = propagated(program)
    compiled, jaxpr = program.stage("hlo-spmd"), flow_of(report)
    mesh = next((each for each in program.meshes if each.size == program.partitions > 1), None)
    if stage is None or flow is None or compiled is None or mesh is None:
        return
    numbered = {} if jaxpr is None else equations_by_number(jaxpr.text, program.capture.equations)
    rows = rows_by_tag(flow, stage)
    for product in products:
        tags = [tag for tag in tags_in(compiled, product.instruction.span) if rows.get(tag)]
        row = rows[tags[0]][0] if tags else None
        if row is None or does(flow.rows[row].name) is not Does.CONTRACT:
            continue
        nodes = [node for node in (*flow.operands(row), *flow.results(row)) if node is not None]
        shardings = [each for node in nodes if (each := sharding_at(flow, node)) is not None]
        used = {axis.name for each in shardings for dim in each.dims for axis in dim.axes}
        if manual := set(flow.rows[row].manual):
            place = numbered.get(tags[0])
            operands = operands_over(jaxpr, place) if jaxpr is not None and place is not None else ()
            used |= {held.axis for value in operands for held in value} if operands else manual
        yield product, {name: size for name, size in mesh.axes if size > 1 and name not in used}


RULE = Rule(
    id="SS29",
    slug="repeated-compute",
    severity="warning",
    finds="Matrix products that all devices along a mesh axis compute from the same values.",
    why="The axis does not speed up this part: with a dimension of an operand sharded over it, each device would"
    " compute its share. Usually the batch is not sharded over an axis that was meant for it, or a constraint says"
    " `P()`.",
    proof="After propagation neither an operand of the product nor its result is sharded over the axis; in a shard_map,"
    " no operand varies over it. Not reported below 10 % of the operations of all products in a run, nor without the"
    " StableHLO that was compiled.",
    faulty="""x = jax.device_put(x, NamedSharding(mesh, P("data")))  # the mesh has data and model
y = x @ w  # w is P(): all devices along model compute the same""",
    repaired="""x = jax.device_put(x, NamedSharding(mesh, P(("data", "model"))))
y = x @ w""",
    check=check,
    saves="compute",
    tries="the program without a constraint that requests an operand without the axis; a reshard over the axis; the"
    " axis in an in_spec P()",
    threshold=MIN_REPEATED_FLOPS,
    threshold_is="floating-point operations that a device repeats per run",
    is_outcome=True,
)
