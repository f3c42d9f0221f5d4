"""Gradients that are taken inside of a shard_map, as they are after their sums, against differences of the loss.

Where all devices have the same loss, its change is the sum of the products of gradients and directions over the blocks
of an argument, each once. Where they have losses of their own, both the sum of these and their mean may be meant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...protocol.trace import Place
from ...protocol.values import Derivative
from ..inputs.callables import Arguments
from ..inputs.paths import path_text
from ..own_jit import jax_jit
from ..program.wide import wide_array, widened, x64
from .derivative_names import Named
from .gradient_flow import Flow, Occurrence, Record, Scale
from .gradient_marks import Marking
from .mapped_gradients import MAX_MOVED, Evaluation
from .reference import on_one

STEP = 1e-5
TOLERANCE = 1e-3
EQUAL = 1e-7
"""Relative difference of values that are the same on several devices."""

Arrays = dict[str, np.ndarray]


class Checked(NamedTuple):
    """The derivatives that were compared, and how many were not: their sums are not known."""

    derivatives: list[Derivative]
    left_out: int


def compared(function: Any, given: Arguments, seed: int) -> Checked:
    """Compare the derivatives that a function takes inside of a shard_map, with arguments that have values."""
    leaves, tree = jax.tree.flatten(given)
    places = [number for number, leaf in enumerate(leaves) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]

    def called(*arrays: Any) -> Any:
        whole = list(leaves)
        for number, array in zip(places, arrays, strict=True):
            whole[number] = array
        args, kwargs = jax.tree.unflatten(tree, whole)
        return function(*args, **kwargs)

    marking = Marking()
    jax.clear_caches()
    with marking.watching():
        traced = jax.make_jaxpr(called)(*(leaves[number] for number in places))
    jax.clear_caches()
    if not marking.calls:
        return Checked([], 0)
    random = np.random.default_rng(seed)
    with x64(True), on_one():
        values = [_apart(_on_host(leaves[number]), random) for number in places]
        return Ratios(widened(traced), values, marking).all()


def _on_host(leaf: Any) -> Any:
    """The values of an argument, wide; of keys on one device, as the others are."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
    return jax.device_put(leaf, jax.local_devices()[0]) if is_key else wide_array(np.asarray(leaf))


def _apart(value: Any, random: np.random.Generator) -> Any:
    """An array whose blocks differ: zeros, or ones, look like copies."""
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return value
    size = np.where(value == 0, 1, np.abs(value.astype(np.float64)))
    return value + (1e-3 * random.random(value.shape) * size * np.where(value < 0, -1, 1)).astype(value.dtype)


class Ratios:
    """The gradients of one traced function beside the differences."""

    def __init__(self, traced: Any, values: Sequence[Any], marking: Marking) -> None:
        self.calls, self._values = marking.calls, values
        self._flow, self._positions = Flow(), dict[tuple[Occurrence, int], int]()

        def evaluated(step: Any, *arrays: Any) -> Any:
            found, own = Evaluation(step), dict[str, Any]()
            found.labelled(traced, arrays, [None] * len(arrays), own)
            self._flow, self._positions = found.flow, found.positions
            return own

        self._evaluated = jax_jit(evaluated)

    def all(self) -> Checked:
        """Each argument of each derivative; its arrays one by one where they are wrong together."""
        here = self._at({})
        found, left_out = [], 0
        last = self._flow.last()
        kinds = {each.of for each in last if each.role == "gradient"}
        for of in sorted(kinds, key=sorted):
            call = self.calls[next(iter(of))[0]]
            start = 0
            for number, primal in enumerate(call.primals):
                paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(primal)[0]]
                own = [leaf for leaf in range(start, start + len(paths)) if self._is_marked(of, leaf, last)]
                argument, start = call.named.arguments[number], start + len(paths)
                for group in self._groups(of, own, last, here):
                    path = path_text(paths[group.leaves[0] - start]) if len(group.leaves) == 1 and paths[0] else ""
                    derivative = group.derivative(call.named, f"{argument}{path}")
                    found += [] if derivative is None else [derivative]
                    left_out += derivative is None
        return Checked(found, left_out)

    def _is_marked(self, of: frozenset[Occurrence], leaf: int, last: list[Record]) -> bool:
        is_moved = all(self._positions.get((each, leaf), MAX_MOVED) < MAX_MOVED for each in of)
        return is_moved and any((each.role, each.of, each.leaf) == ("gradient", of, leaf) for each in last)

    def _groups(
        self, of: frozenset[Occurrence], leaves: list[int], last: list[Record], here: Arrays
    ) -> Iterator[Group]:
        if not leaves:
            return
        whole = self._group(of, leaves, last, here)
        if whole.is_right or whole.is_explained or len(leaves) == 1:
            yield whole
        else:
            for leaf in leaves:
                yield self._group(of, [leaf], last, here)

    def _group(self, of: frozenset[Occurrence], leaves: list[int], last: list[Record], here: Arrays) -> Group:
        moved = [self._positions[each, leaf] for each in of for leaf in leaves]
        floats = (each for each in self._values if jnp.issubdtype(each.dtype, jnp.floating))
        size = max(1.0, *(float(np.max(np.abs(each), initial=0)) for each in floats))
        there = [
            (self._at(dict.fromkeys(moved, step)), self._at(dict.fromkeys(moved, -step)), 2 * step)
            for step in (STEP * size, 4 * STEP * size)
        ]
        gradients = [each for each in last if each.role == "gradient" and each.of == of]
        records = [[each for each in gradients if each.leaf == leaf] for leaf in leaves]
        values = [each for each in self._flow.records if each.role == "value" and each.of <= of]
        losses = [[each] for each in values if each in last and each.of == of]
        if not losses:  # it is not followed, or not used
            losses = [[each for each in values if not each.parents]]
        return Group(leaves, records, losses, here, there)

    def _at(self, moved: dict[int, float]) -> Arrays:
        step = np.zeros(MAX_MOVED)
        for position, by in moved.items():
            step[position] = by
        return {key: np.asarray(value, np.float64) for key, value in self._evaluated(step, *self._values).items()}


class Multiple(NamedTuple):
    """A gradient, and how many times it is taken."""

    record: Record
    scale: Scale


Pair = tuple[float, float, float, Multiple]
"""A gradient's product with the direction, the differences, and how far these vary with the size of the step."""


class Group:
    """Some arrays of an argument, which are moved together."""

    def __init__(
        self,
        leaves: list[int],
        records: list[list[Record]],
        losses: list[list[Record]],
        here: Arrays,
        there: list[tuple[Arrays, Arrays, float]],
    ) -> None:
        self.leaves, self.axes = leaves, dict(records[0][0].axes)
        changes = [[change for loss in losses for change in _changes(loss, *each)] for each in there]
        self.pairs: list[Pair] = [
            (slope, first, abs(first - second), multiple)
            for slope, multiple in _slopes(records, here)
            for first, second in zip(*changes, strict=True)
        ]
        self.is_open = any(each.is_lost or each.is_scaled for each in itertools.chain(*losses, *records))
        self.is_multiple = any(each.is_multiple for each in itertools.chain(*losses, *records))

    @property
    def is_right(self) -> bool:
        """Return whether one of the sums that may be meant is what the differences give."""
        return any(_is_close(slope, change, spread) for slope, change, spread, _ in self.pairs)

    @property
    def is_explained(self) -> bool:
        """Return whether all of them are alike too large or too small, by the size of axes."""
        return any(self._is_explained(*pair[:3]) for pair in self.pairs if pair[3].scale == pair[3].record.scales[0])

    def derivative(self, named: Named, argument: str) -> Derivative | None:
        """The derivative; None where it may be meant otherwise."""
        if not self.pairs:
            return None
        ranked = sorted(self.pairs, key=lambda pair: _distance(pair[0], pair[1]))
        if not self.is_right:  # what is not scaled yet is the gradient: a learning rate comes after it
            ranked.sort(key=self._rank)
        slope, change, spread, (record, _) = next((each for each in ranked if _is_close(*each[:3])), ranked[0])
        if not self.is_right and (self.is_open or (self.is_multiple and not self._is_explained(slope, change, spread))):
            return None
        here = (named.function, argument, slope, change, spread, named.file, named.line, record.lines)
        return Derivative(*here, *(self._factor(ranked) if self.is_right else ()))

    def _factor(self, ranked: list[Pair]) -> tuple[float, Place | None] | tuple[()]:
        """The constant, and its line, that a gradient which is right has in the place of sizes of axes."""
        right = [pair for pair in ranked if _is_close(*pair[:3])]
        slope, change, spread, (_, (_, factor, at)) = right[0]
        if not factor or any(pair[3].scale.factor is None for pair in right):
            return ()
        return (factor, at) if self._is_explained(slope / factor, change, spread) else ()

    def _rank(self, pair: Pair) -> tuple[bool, ...]:
        """Order pairs by how well the axes explain them: those that the gradient was reduced over, then any."""
        slope, change, spread, (record, scale) = pair
        by = (self._is_explained(slope, change, spread, axes) for axes in (record.reduced, self.axes))
        return (*(not each for each in by), scale != record.scales[0])

    def _is_explained(self, slope: float, change: float, spread: float, axes: Collection[str] | None = None) -> bool:
        """Return whether a sum over some axes more, or less, would make it right."""
        sizes = [size for axis, size in self.axes.items() if size > 1 and (axes is None or axis in axes)]
        products = [math.prod(each) for count in range(len(sizes)) for each in itertools.combinations(sizes, count + 1)]
        return any(_is_close(slope, change * by, spread * by) for each in products for by in (each, 1 / each))


def _is_close(slope: float, change: float, spread: float) -> bool:
    apart = abs(slope - change)
    return apart <= TOLERANCE * max(abs(slope), abs(change)) or apart <= 10 * spread or apart < 1e-9


def _distance(slope: float, change: float) -> float:
    """Ratio of one to the other, on a logarithmic scale."""
    return abs(math.log(slope / change)) if slope * change > 0 else math.inf


def _slopes(records: list[list[Record]], here: Arrays) -> Iterator[tuple[float, Multiple]]:
    """The products of gradients and directions, for each sum and multiple of the gradients that may be the last."""
    for chosen in zip(*records, strict=False):
        products = [_product(each, here) for each in chosen]
        if None in products:
            continue
        for scales in zip(*(each.scales for each in chosen), strict=False):
            slope = sum(scale.value * (product or 0.0) for scale, product in zip(scales, products, strict=True))
            yield slope, Multiple(chosen[0], scales[0])


def _product(record: Record, here: Arrays) -> float | None:
    """Product of a gradient and its direction, each block once; None where a block has several gradients."""
    gradient, along = here[record.slot], here.get(f"{record.slot} along")
    if along is None or gradient.shape != along.shape:
        return None
    product = gradient * along
    for number, _ in reversed(list(enumerate(record.axes))):
        if _is_equal(along, number):
            if not _is_equal(gradient, number):
                return None
            product = product.take([0], number)
    return float(product.sum())


def _changes(losses: list[Record], plus: Arrays, minus: Arrays, by: float) -> list[float]:
    """The change of the loss; both the sum and the mean along each axis along which losses differ."""
    if not losses:
        return []
    scaled = [(each.scales[-1].value, plus[each.slot], minus[each.slot]) for each in losses]
    change = sum(scale * (one - other) for scale, one, other in scaled) / by
    found = [np.asarray(change)]
    for number, _ in reversed(list(enumerate(losses[0].axes))):
        if all(_is_equal(each, number) for _, *pair in scaled for each in pair):
            found = [each.take(0, number) for each in found]
        else:
            found = [kind(each, number) for each in found for kind in (np.sum, np.mean)]
    return [float(each.sum()) for each in found]


def _is_equal(array: np.ndarray, dimension: int) -> bool:
    first: np.ndarray = array.take([0], dimension)
    return bool(np.all(np.abs(array - first) <= EQUAL * np.max(np.abs(array), initial=0)))
