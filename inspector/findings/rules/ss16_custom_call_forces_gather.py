"""SS16: a kernel that the partitioner knows nothing of."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress

from ....parsers.mlir.sdy import Sharding
from ....parsers.mlir.types import TensorType
from ....parsers.sharding_syntax.mesh import join_axes
from ...dataflow.mlir import Dataflow, Node
from ...ir.sharding_spellings import from_sdy
from ...ir.types import types_text
from ...report import WRITTEN, Collective, Finding, FindingPlace, Report
from ...shardings.explained import wording_of
from ...shardings.recorded import sharding_at
from ...shardings.table import propagated
from ..compiled import at_most, compiled_to, in_hlo
from ..rule import Rule, advice, finding

_TARGET = re.compile(rb"custom_call @\"?([\w.$]+)")

KNOWN = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.", "LayoutConstraint", "AllocateBuffer")
"""Calls that are the partitioner's own."""


def check(report: Report) -> Iterator[Finding]:
    """Each custom call without a sharding rule that takes an operand that is cut, and a gather of that."""
    _, flow = propagated(report.program)
    if flow is None or not flow.has("custom_call"):
        return
    for row, found in enumerate(flow.rows):
        if found.name == "stablehlo.custom_call" and flow.records.rule(found) is None and not found.manual:
            yield from _at(report, flow, row)


def _at(report: Report, flow: Dataflow, row: int) -> Iterator[Finding]:
    target = _TARGET.search(flow.text.source.data, flow.rows[row].start, flow.rows[row].own[0].end)
    name = "a custom call" if target is None else target[1].decode("utf-8", "replace")
    if name.startswith(KNOWN):
        return
    wording = wording_of(flow)
    _, place = wording.places.operation(row)
    for node in flow.operands(row):
        sharding = None if node is None else sharding_at(flow, node)
        axes = () if sharding is None else tuple(axis for dim in sharding.dims for axis in dim.axes)
        shape = None if node is None or sharding is None else _part(flow, node, sharding)
        if node is None or not axes or shape is None:
            continue
        gathers = [each for each in in_hlo(report, "all-gather") if each.origin not in WRITTEN]
        over = [each for each in gathers if axes[0].name in {axis.name for axis in each.axes or ()}]
        # Some are taken apart before they are partitioned: then it is parts of the operand that are gathered there.
        # Of one whose shards are worked on by themselves only the results are.
        here = [each for each in over if place.frame is not None and each.source.frame == place.frame]
        alike = [each for each in over if shape in [type.shape for type in each.operand_types]]
        gather = next(iter(here or alike), None)
        if gather is None or _elements(here or alike) < math.prod(shape):
            continue
        yield finding(
            RULE,
            FindingPlace(name, place, "sdy", wording.span(row)),
            f"{name} has no sharding rule, so {wording.name(node)} is gathered over {join_axes(axes)}",
            confidence="proved",
            subject=name,
            axes=tuple(dict.fromkeys(axis.name for axis in axes)),
            evidence=(compiled_to(gather, f", {types_text(gather.result_types)}"),),
            fixes=advice(
                f"call it in a shard_map over {', '.join(repr(axis.name) for axis in axes)}, on each shard;"
                " or give it a sharding rule: jax.experimental.custom_partitioning"
            ),
            saves=at_most(gather),
        )
        return


def _part(flow: Dataflow, node: Node, sharding: Sharding) -> tuple[int, ...] | None:
    types = flow.rows[node.row].types if node.kind == "result" else ()
    type = types[node.number] if node.number < len(types) else None
    if not isinstance(type, TensorType) or None in type.dims:
        return None
    shape = tuple(size for size in type.dims if size is not None)
    with suppress(ValueError):  # on one device alone
        return from_sdy(sharding, flow.module.meshes).local_shape(shape)
    return shape


def _elements(gathers: list[Collective]) -> int:
    return sum(type.elements or 0 for each in gathers for type in each.operand_types)


RULE = Rule(
    id="SS16",
    slug="custom-call-forces-gather",
    severity="warning",
    finds="A custom call or kernel without a sharding rule, for which the partitioner gathers a sharded operand.",
    why="The partitioner does not know that the call can work on each shard separately. Every device receives the"
    " full operand and does all of the work.",
    proof="In the propagated program the call has no sharding rule, and its operand is sharded over an axis; the"
    " compiled program gathers a value of the shape of the operand's shards along that axis, or the partitioned"
    " program does, if the backend does not know the call.",
    faulty='jnp.linalg.eigh(matrices)  # matrices is P("x"); on TPU',
    repaired='jax.shard_map(jnp.linalg.eigh, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(matrices)',
    check=check,
    by_hand="only the author of a kernel knows what it computes from a shard",
)
