"""SS33: a batch that every device of a data-parallel axis computes whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....parsers.sharding_syntax.mesh import AxisRef
from ...collectives.context import context_of
from ...communication.axis_use import argument_kinds
from ...report import Finding, FindingPlace, Report, ShardedValue
from ...units import with_more
from ..rule import Rule, advice, finding

OF_DATA = re.compile(r"(?i)(?:.*_)?(?:data|batch|dp|ddp|fsdp|zero|replica|replicas)(?:_.*)?")
"""Names of axes that are for batches: `data`, `fsdp`, `dp_shard`."""

SPLITTING = ("argument", "constraint", "shard_map input")


def check(report: Report) -> Iterator[Finding]:
    """Each axis for data of a program that trains, over which no value is split in its first dimension."""
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    kinds = {each.name: kind for kind, each, _ in argument_kinds(report.program, arguments)}
    batch = [each for each in arguments if kinds[each.name] == "data" and each.type.shape and each.type.shape[0] > 1]
    if not batch or not context_of(report.program).differentiated or "parameters" not in kinds.values():
        return
    data = {each.value for each in report.shardings if kinds.get(each.name, "data") == "data"}
    split = {name for each in report.shardings if each.value in data for name in _splitting(each)}
    for name, size in {axis for each in batch if each.sharding for axis in each.sharding.mesh.axes}:
        if size > 1 and OF_DATA.fullmatch(name) and name not in split:
            yield _found(batch, name, size)


def _splitting(value: ShardedValue) -> Iterator[str]:
    """The axes that split a value: in any dimension if that was asked for, as of stacked batches, else in the first."""
    if value.sharding is None or value.role not in SPLITTING:
        return
    is_asked = value.role != "argument" or value.requested is not None
    for dim in value.sharding.dims if is_asked else value.sharding.dims[:1]:
        yield from (axis.name for axis in dim.axes)


def _found(batch: list[ShardedValue], axis: str, size: int) -> Finding:
    batch = sorted(batch, key=lambda each: -(each.type.bytes or 0))
    first, rows = batch[0], (batch[0].type.shape or (0,))[0]
    names, verb = with_more(first.name, len(batch)), "are" if len(batch) > 1 else "is"
    divides = "" if rows % size == 0 else f", whose {rows} rows do not divide by {size},"
    return finding(
        RULE,
        FindingPlace(first.name, first.source, first.stage, first.span),
        f"{names}{divides} {verb} whole on every device: {axis}={size} splits no batch",
        confidence="likely",
        subject=first.name,
        axes=(AxisRef(axis),),
        evidence=(
            ("data", ", ".join(f"{each.name} {each.type} as {each.spec}" for each in batch[:6])),
            ("each device computes", f"all {rows} rows, {size} times what it needs to"),
        ),
        fixes=advice(f"place it as NamedSharding(mesh, P({axis!r})), by jax.device_put or in_shardings"),
    )


RULE = Rule(
    id="SS33",
    slug="unsplit-batch",
    severity="warning",
    finds="A training step whose mesh has an axis for data that splits no batch.",
    why="Each device of the axis computes the whole batch: results are right, and nothing is faster. A host array in"
    " the place of a sharded one is enough, or a spec that names another axis.",
    proof="The shardings after propagation of arguments that are not trained, of constraints and of a shard_map's"
    " inputs. Axes for data are known by their names: data, batch, dp, fsdp, replica.",
    faulty="step(params, x)  # x is a numpy.ndarray",
    repaired="""step(params, jax.device_put(x, NamedSharding(mesh, P("data"))))""",
    check=check,
    by_hand="the arguments are made outside of the function",
    saves="compute",
    is_observation=True,
)
