"""The use of each mesh axis: what is sharded over it, and what runs over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from ..capture.model import UPDATED
from ..catalog.spellings import EXCHANGES, PARAMETERS, place_of_parameters
from ..collectives.context import context_of
from ..ir.name_scopes import Leaf, keys_of_name
from ..ir.program import Program
from ..ir.types import jax_type
from ..report import ShardedValue, StrategyTotal
from ..report.communication import AxisUse, Sharded, Strategy, Use
from .weights import weights_of

Kind = Literal["parameters", "optimizer state", "data"]

MOST = 0.5
"""Share of the bytes over an axis that shards batch and parameters from which it is used for these."""

MUCH = 0.25
"""Share of the bytes over such an axis from which sums of activations say that the batch does not keep it."""

INDICES = ("i32", "i64", "u32", "u64", "bool")
"""Types of whole numbers in which no weights are stored."""

OF_DATA_PARALLELISM = ("weight gathers", "gradient sync", "averages", "reductions", "scalar reductions")


def axes_used(
    program: Program, shardings: Sequence[ShardedValue], totals: Sequence[StrategyTotal]
) -> tuple[AxisUse, ...]:
    """The axes of the program's meshes that have more than one device, each with its use."""
    sizes = {name: size for mesh in program.meshes for name, size in mesh.axes if size > 1}
    arguments = [each for each in shardings if each.role == "argument" and each.sharding is not None]
    if not sizes or not arguments:
        return ()
    kinds, parameters = dict[str, Kind](), dict[str, ShardedValue]()
    for kind, each, parameter in argument_kinds(program, arguments):
        kinds[each.name], parameters[each.name] = kind, parameter or each
    rows = {
        axis.name
        for each in shardings
        if each.role == "output" and each.sharding is not None and each.sharding.dims
        for axis in each.sharding.dims[0].axes
    }
    collectives = (each for total in totals for each in total.collectives)
    sent_on = (each for each in collectives if each.kind in EXCHANGES and each.origin == "user")
    grid = {axis.name for each in sent_on for axis in each.axes or ()}  # its rows need those of other devices
    batch = set(sizes) if context_of(program).differentiated else rows - grid
    batch -= _only_of_state(program, [each for each in arguments if kinds[each.name] == "data"], batch)
    return tuple(
        _use(name, size, arguments, kinds, parameters, totals, has_batch=name in batch) for name, size in sizes.items()
    )


def _only_of_state(program: Program, data: Sequence[ShardedValue], axes: Iterable[str]) -> set[str]:
    """The axes that split the first dimension of nothing but trees which come back, as caches of pages, beside data."""
    returned = {jax_type(value.type) for value in program.capture.outputs}
    state = [each for each in data if each.type in returned and keys_of_name(each.name)[1:]]
    others = [each for each in data if each not in state and each.type.shape and each.type.dtype != "u32"]  # no keys
    return {axis for axis in axes if others and not any(0 in _dimensions_over(axis, each) for each in others)}


def argument_kinds(
    program: Program, arguments: Sequence[ShardedValue]
) -> Iterator[tuple[Kind, ShardedValue, ShardedValue | None]]:
    """Each argument with what it is: a parameter, a part of an optimizer's state and of which parameter, or data.

    Where nothing is trained, trees hold parameters, but for batches and those that are returned, as a cache; arrays by
    themselves are data.
    """
    trained, trains = weights_of(program), context_of(program).differentiated
    returned = {jax_type(value.type) for value in program.capture.outputs}
    held = {value.path.removeprefix(UPDATED) for value in program.capture.outputs if value.path.startswith(UPDATED)}
    frozen = _frozen([each for each in arguments if each.name not in trained | held])
    batches = set() if trains else _batches(arguments)
    known: dict[tuple[object, ...], tuple[int, ShardedValue]] = {}
    paths = {each.name: keys_of_name(each.name)[1:] for each in arguments}
    for each in sorted(arguments, key=lambda each: place_of_parameters(each.name)):
        steps = paths[each.name]
        if not trains:
            is_weight = steps and each.type not in returned and each.name not in batches
            yield "parameters" if is_weight else "data", each, None
            continue
        if each.name not in trained | held:
            yield "parameters" if each.name in frozen else "data", each, None
            continue
        # Moments have the path of their parameter in its container behind their own, and come after it; often wider.
        ends = ((each.type.shape, *steps[start:]) for start in range(len(steps) + 1))
        parameter = min((known[end] for end in ends if end in known), key=lambda found: found[0], default=None)
        known.setdefault((each.type.shape, *(key for key in steps if key not in PARAMETERS)), (len(known), each))
        yield ("parameters", each, None) if parameter is None else ("optimizer state", each, parameter[1])


def _batches(arguments: Sequence[ShardedValue]) -> set[str]:
    """The arguments in trees of which all have one first dimension, and some are indices, as labels."""
    alike = (tree for tree in _trees(arguments).values() if len({(each.type.shape or ())[:1] for each in tree}) == 1)
    return {each.name for tree in alike if _has_indices(tree) for each in tree}


def _frozen(arguments: Sequence[ShardedValue]) -> set[str]:
    """The arguments in trees without indices whose matrices have different first dimensions: no batch has that."""
    trees = _trees(arguments)
    sizes = {
        root: {
            shape[0]
            for each in tree
            if len(shape := each.type.shape or ()) > 1 and each.type.dtype.startswith(("f", "bf"))
        }
        for root, tree in trees.items()
    }
    frozen = (tree for root, tree in trees.items() if len(sizes[root]) > 1 and not _has_indices(tree))
    return {each.name for tree in frozen for each in tree}


def _has_indices(tree: Sequence[ShardedValue]) -> bool:
    """Return whether a tree has arrays of labels, actions, keys or flags, which no parameter is."""
    return any(each.type.shape and each.type.dtype in INDICES for each in tree)


def _trees(arguments: Sequence[ShardedValue]) -> dict[str, list[ShardedValue]]:
    trees: dict[str, list[ShardedValue]] = {}
    for each in arguments:
        trees.setdefault(Leaf(each.name, "").root, []).append(each)
    return trees


def _use(
    axis: str,
    size: int,
    arguments: Sequence[ShardedValue],
    kinds: dict[str, Kind],
    parameters: dict[str, ShardedValue],
    totals: Sequence[StrategyTotal],
    *,
    has_batch: bool,
) -> AxisUse:
    """`parameters` are those that optimizer state is of, by its name.

    `has_batch` says that the first dimension of data is a batch where the axis splits it: so it is of results.
    """
    whole, sharded, lost = Counter[str](), Counter[str](), Counter[bool]()
    split = set[int]()
    for each in arguments:
        kind, held = kinds[each.name], each.type.bytes or 0
        over = _dimensions_over(axis, each)
        if kind == "data":
            split.update(over)
            continue
        whole[kind] += held
        sharded[kind] += held if over else 0
        if kind == "optimizer state" and _dimensions_over(axis, parameters[each.name]):
            lost[not over] += held
    parts = [Sharded("batch", 1.0)] if 0 in split and has_batch else []
    parts += [Sharded(f"dimension {each} of data", 1.0) for each in sorted(split) if each or not has_batch]
    parts += [Sharded(kind, sharded[kind] / whole[kind]) for kind in whole if sharded[kind]]
    runs = Counter[Strategy]()
    seconds: dict[Strategy, float] = {}
    for total in totals:
        if any(one.name == axis for one in total.axes or ()):
            runs[total.strategy] += total.wire_bytes or 0
            seconds[total.strategy] = seconds.get(total.strategy, 0.0) + (total.seconds or 0.0)
    sent = sum(runs.values())
    listed = [Use(name, count, seconds[name] or None, share=count / sent) for name, count in runs.most_common() if sent]
    return AxisUse(axis, size, tuple(parts), runs=tuple(listed), bytes=sent, problem=_problem(parts, listed, lost))


def _dimensions_over(axis: str, value: ShardedValue) -> list[int]:
    dims = () if value.sharding is None else tuple(dim.axes for dim in value.sharding.dims)
    return [number for number, axes in enumerate(dims) if any(each.name == axis for each in axes)]


def _problem(parts: Sequence[Sharded], runs: Sequence[Use], lost: Counter[bool]) -> str:
    """Return in which way the use of an axis is not what its shardings are for; empty where it is.

    `lost` has the bytes of the optimizer state of parameters that are sharded over it: whether it is not.
    """
    names = {part.what for part in parts}
    if not parts and not runs:
        return "shards nothing, and nothing runs over it"
    if not parts:
        return "shards no argument"
    planned = sum(run.share for run in runs if run.strategy in OF_DATA_PARALLELISM)
    others = sum(run.share for run in runs if run.strategy == "tensor parallelism")
    if {"batch", "parameters"} <= names and planned < MOST and others >= MUCH:
        return f"the batch loses it to weights: {others:.0%} is tensor parallelism"
    if lost[True] > lost[False]:
        return "shards parameters, but not their optimizer state"
    return ""
