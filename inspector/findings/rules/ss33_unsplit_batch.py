"""SS33: a mesh axis that splits nothing: a batch that each device computes whole, or parameters that all hold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal

from ....parsers.sharding_syntax.mesh import AxisRef
from ...collectives.context import context_of
from ...communication.axis_use import argument_kinds
from ...cost.products import products_of
from ...report import Finding, FindingPlace, Report, ShardedValue
from ...units import format_bytes, with_more
from ..fixes.batched import split_loops
from ..fixes.edits import axes_text
from ..fixes.specs import sharding_words
from ..rule import MIN_SPLIT_ELEMENTS, Rule, advice, finding
from .ss29_repeated_compute import unused_axes

OF_DATA = re.compile(r"(?i)(?:.*_)?(?:data|batch|dp|ddp|fsdp|zero|replica|replicas)(?:_.*)?")
"""Names of axes that are for batches: `data`, `fsdp`, `dp_shard`."""

OF_WEIGHTS = re.compile(r"(?i)(?:.*_)?(?:fsdp|zero)(?:_.*)?")
"""Names of axes that are for parameters, or for the state of their optimizer, too."""

State = Literal["whole", "gathered", "held"]

SPLITTING = ("argument", "constraint", "shard_map input")


def check(report: Report) -> Iterator[Finding]:
    """Each axis for data of a program that trains, over which no batch is split, and each axis that splits nothing."""
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    kinds = {each.name: kind for kind, each, _ in argument_kinds(report.program, arguments)}
    batch = [each for each in arguments if kinds[each.name] == "data" and each.type.shape and each.type.shape[0] > 1]
    weights = [each for each in arguments if kinds[each.name] != "data" and _is_large(each)]
    trains = context_of(report.program).differentiated and "parameters" in kinds.values()
    data = {each.value for each in report.shardings if kinds.get(each.name, "data") == "data"}
    moved = [each for each in report.communication if each.strategy == "input gathers"]
    gathered = {(axis.name, path) for total in moved for axis in total.axes or () for path in total.arguments}
    split = {name for each in report.shardings if each.value in data for name in _splitting(each, gathered)}
    used = {axis.name for each in report.shardings if each.sharding for axis in each.sharding.sharded}
    used |= {axis.name for each in report.collectives for axis in each.axes or ()}
    states = [
        each
        for each in report.shardings
        if each.role == "argument" or (each.role == "output" and each.requested is not None)
        if kinds.get(each.name) != "data"
    ]
    of_weights = {axis.name for each in states if each.sharding for axis in each.sharding.sharded}
    for name, size in dict.fromkeys(axis for each in arguments if each.sharding for axis in each.sharding.mesh.axes):
        own = [each for each in batch if each.sharding and name in _first_axes(each)]
        is_of_data = trains and bool(own) and all((name, each.name) in gathered for each in own)
        if OF_DATA.fullmatch(name) or is_of_data:
            whole = batch if trains else list(filter(_is_large, batch))
            if size > 1 and whole and name not in (split if trains else used):
                again = [each for each in whole if (name, each.name) in gathered]
                if again and not _repeats(report, name):
                    continue  # parameters that the axis splits split the products instead
                yield _found(report, again or whole, name, size, "gathered" if again else "whole")
            elif size > 1 and trains and weights and OF_WEIGHTS.fullmatch(name) and name not in of_weights:
                yield _found(report, weights, name, size, "held")
        elif size > 1 and name not in used and weights:
            yield _found(report, weights, name, size, "held")


def _repeats(report: Report, axis: str) -> bool:
    """Return whether all devices along an axis compute a matrix product from the same values, or there is none."""
    unused = [axes for _, axes in unused_axes(report, products_of(report.program))]
    return not unused or any(axis in axes for axes in unused)


def _first_axes(value: ShardedValue) -> list[str]:
    dims = value.sharding.dims[:1] if value.sharding is not None else ()
    return [axis.name for dim in dims for axis in dim.axes]


def _splitting(value: ShardedValue, gathered: Collection[tuple[str, str]]) -> Iterator[str]:
    """The axes that split a value: in any dimension if that was asked for, as of stacked batches, else in the first.

    Those over which an argument is gathered do not, nor those over which a shard_map takes it whole.
    """
    is_refused = value.role == "shard_map input" and value.agrees is False
    if value.sharding is None or value.role not in SPLITTING or is_refused:
        return
    is_asked = value.role != "argument" or value.requested is not None
    axes = {axis.name for dim in value.sharding.dims[: None if is_asked else 1] for axis in dim.axes}
    yield from (axis for axis in axes if value.role != "argument" or (axis, value.name) not in gathered)


def _is_large(value: ShardedValue) -> bool:
    return len(value.type.shape or ()) > 1 and (value.type.elements or 0) >= MIN_SPLIT_ELEMENTS


def _split_spec(value: ShardedValue, axis: str, size: int) -> str:
    """The spec that splits the largest dimension that divides."""
    shape = value.type.shape or ()
    number = max(range(len(shape)), key=lambda each: (shape[each] % size == 0, shape[each]), default=0)
    return f"P({', '.join(['None'] * number + [repr(axis)])})"


def _is_split(value: ShardedValue) -> bool:
    return value.sharding is not None and bool(value.sharding.sharded)


def _found(report: Report, values: list[ShardedValue], axis: str, size: int, state: State) -> Finding:
    values = sorted(values, key=lambda each: (_is_split(each), -(each.type.bytes or 0)))
    first, rows = values[0], (values[0].type.shape or (0,))[0]
    names, verb = with_more(first.name, len(values)), "are" if len(values) > 1 else "is"
    divides = f", whose {rows} rows do not divide by {size}," if state == "whole" and rows % size else ""
    if state == "gathered":
        how = "gathered on every device"
    else:
        how = f"not split over {axis} by rows" if any(map(_is_split, values)) else "whole on every device"
    message = f"{names}{divides} {verb} {how}"
    also = tuple(dict.fromkeys((*_first_axes(first), axis)))
    is_whole = state == "held" and not _is_split(first)
    spec = _split_spec(first, axis, size) if is_whole else f"P({axes_text(also)})"
    fix = f"place it as {sharding_words(report, spec)}, by jax.device_put or jit's in_shardings"
    if divides:
        fix = f"make it {-(-rows // size) * size} rows, or {rows // size * size}, and {fix}"
    inputs = [each for each in report.shardings if each.role == "shard_map input" and each.value == first.value]
    if state == "gathered" and any(each.agrees is False for each in inputs):
        fix = f"request P({axis!r}) for it in the shard_map's in_specs, which take it whole"
    elif state == "gathered":
        fix = "shard a dimension that no loop runs over, and no lookup indexes"
    gathers = [total for total in report.communication if state == "gathered" and first.name in total.arguments]
    places = dict.fromkeys(each.source for total in gathers for each in total.collectives)
    copies = "computes", f"all of it, {size} times what it needs to"
    if state == "held":
        copies = "holds", f"{format_bytes(sum(each.type.bytes or 0 for each in values))} of the same"
    return finding(
        RULE,
        FindingPlace(first.name, first.source, first.stage, first.span),
        f"{axis}={size} splits {'no parameter' if OF_DATA.fullmatch(axis) else 'nothing'}: {message}"
        if state == "held"
        else f"{message}: {axis}={size} splits no batch",
        confidence="likely",
        subject=first.name,
        axes=(AxisRef(axis),),
        evidence=(
            (state, ", ".join(f"{each.name} {each.type} as {each.spec}" for each in values[:6])),
            (f"each device {copies[0]}", copies[1]),
        ),
        fixes=(
            *dict.fromkeys(each for place in places for each in split_loops(report.program, place, size)),
            *advice(fix),
        ),
    )


RULE = Rule(
    id="SS33",
    slug="unsplit-batch",
    severity="warning",
    finds="A mesh axis that splits nothing: a training step whose axis for data splits no batch, or whose axis for fsdp"
    " splits no parameter, or another axis over which no parameter, and no other value, is split.",
    why="Each device of the axis computes the whole batch: results are right, and nothing is faster. A host array in"
    " the place of a sharded one is enough, or a spec that names another axis. Parameters come out whole if the jit"
    " that makes them has no out_shardings: a model's annotations, as by nn.with_partitioning, shard nothing alone."
    " Where the axis shards the steps of a scan, each step needs its slice on every device; in_specs=P() of a shard_map"
    " gathers what is split.",
    proof="The shardings after propagation of arguments that are not trained, of constraints and of a shard_map's"
    " inputs, without the axes over which an argument is gathered; for other axes, of all values, and the axes of the"
    " collectives. Axes for data are known by their names (data, batch, dp, fsdp, replica), or by the batches that they"
    " split.",
    faulty="step(params, x)  # x is a numpy.ndarray",
    repaired="""step(params, jax.device_put(x, NamedSharding(mesh, P("data"))))""",
    check=check,
    tries="a loop whose rows are gathered, as a vmap of all rows, or of a loop for each device, whose sums are added",
    by_hand="the arguments are made outside of the function",
    saves="compute",
    is_observation=True,
)
