"""SS29: matrix products that several devices compute from the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ....parsers.hlo import Instruction
from ....parsers.sharding_syntax.mesh import AxisRef, join_axes
from ...collectives.context import context_of
from ...cost.places import machine_of
from ...cost.products import products_of
from ...ir.meshes import axes_of_groups
from ...ir.types import array_type
from ...report import Finding, FindingPlace, Report, SourcePosition
from ...units import format_count, format_seconds
from ..fixes.constraints import replicated_by
from ..fixes.in_specs import sharded_inputs
from ..rule import MAX_ALTERNATIVES, Rule, Saving, advice, finding
from ..support.device_classes import Classes, device_classes

MIN_REPEATED_FLOPS = 1 << 20
"""Operations of a device in one run that another one does as well."""

MIN_SHARE = 0.1
"""Minimum share of all matrix product operations in one run."""

MAX_PARTITIONS = 1 << 12


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
    context = context_of(report.program)
    stage = report.program.stage("hlo-spmd")
    if stage is None or not 1 < context.partitions <= MAX_PARTITIONS or total < least:
        return
    groups: dict[tuple[AxisRef, ...], list[_Product]] = {}
    classes = device_classes(report.program, stage, (each.instruction for each in products))
    for each in products:
        alike = classes.get(each.instruction.start)
        axes = None if alike is None else _axes(report, alike)
        if alike is not None and axes:
            repeated = each.flops * (1 - len(set(alike)) / len(alike))
            groups.setdefault(axes, []).append(_Product(each.instruction, each.flops, each.runs, repeated))
    for axes, found in groups.items():
        repeated = sum(each.repeated for each in found)
        if repeated >= max(least, MIN_SHARE * total):
            yield _found(report, axes, found, repeated, total)


def _axes(report: Report, classes: Classes) -> tuple[AxisRef, ...] | None:
    """The axes along which devices are of one class."""
    members: dict[int, list[int]] = {}
    for partition, number in enumerate(classes):
        members.setdefault(number, []).append(partition)
    groups = tuple(map(tuple, members.values()))
    return next((axes for mesh in report.program.meshes if (axes := axes_of_groups(groups, mesh)) is not None), None)


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
        f"{several} repeated by all devices along {over}: {repeated / total:.0%} of the FLOPs of a step",
        confidence="proved",
        axes=axes,
        related=replicated,
        evidence=(*_listed(report, products), _amount(repeated, total, seconds)),
        fixes=(
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
    """The products by line, those that repeat most first."""
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


RULE = Rule(
    id="SS29",
    slug="repeated-compute",
    severity="warning",
    finds="Matrix products that all devices along a mesh axis compute from the same values.",
    why="The axis does not speed up this part: with a dimension of an operand sharded over it, each device would"
    " compute its share. Usually the batch is not sharded over an axis that was meant for it, or a constraint says"
    " `P()`.",
    proof="In the partitioner's output, each operand is traced back to arguments and their shardings, through"
    " collectives, loops and branches: the devices of one class hold the same operands. Not reported below 10 % of"
    " the operations of all products in a run, or if anything in between is unknown, such as a custom call.",
    faulty="""x = jax.device_put(x, NamedSharding(mesh, P("data")))  # the mesh has data and model
y = x @ w  # w is P(): all devices along model compute the same""",
    repaired="""x = jax.device_put(x, NamedSharding(mesh, P(("data", "model"))))
y = x @ w""",
    check=check,
    saves="compute",
    tries="the program without a constraint that requests an operand without the axis; the axis in an in_spec P()",
    threshold=MIN_REPEATED_FLOPS,
    threshold_is="floating-point operations that a device repeats per run",
)
