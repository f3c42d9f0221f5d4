"""`gather` and `scatter`: slices at places that an array of indices names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .arithmetic import REDUCTIONS
from .element_types import Array, Value
from .operation import Meaning, Operation


def gather(operation: Operation) -> Meaning:
    """`gather`: starts are moved so that all of each slice is inside."""
    offsets, collapsed, mapped = map(operation.numbers, ("offset_dims", "collapsed_slice_dims", "start_index_map"))
    batch, index_batch = map(operation.numbers, ("operand_batching_dims", "start_indices_batching_dims"))
    vector, sizes = operation.number("index_vector_dim"), operation.numbers("slice_sizes")
    rank = len(operation.dims)

    def gathered(x: Array, indices: Array) -> Array:
        starts = _starts(indices, vector, mapped, (batch, index_batch), x.ndim)
        limits = np.array([whole - size for whole, size in zip(x.shape, sizes, strict=True)])
        starts = np.clip(starts, 0, limits)
        found = x[_elements(starts, sizes, tuple(range(x.ndim)))]
        shape = [size for place, size in enumerate(sizes) if place not in collapsed and place not in batch]
        found = found.reshape(*starts.shape[:-1], *shape)
        order = [place for place in range(rank) if place not in offsets] + list(offsets)
        return found.transpose(np.argsort(order)) if rank else found

    return gathered


def _starts(
    indices: Array, vector: int, mapped: Sequence[int], batching: tuple[Sequence[int], Sequence[int]], rank: int
) -> Array:
    """The start in each dimension of the operand, of each slice: [..., rank]."""
    indices = indices[..., None] if vector == indices.ndim else np.moveaxis(indices, vector, -1)
    starts = np.zeros((*indices.shape[:-1], rank), np.int64)
    for number, place in enumerate(mapped):
        starts[..., place] = indices[..., number]
    for place, along in zip(*batching, strict=True):
        along -= along > vector
        shape = [1] * (starts.ndim - 1)
        shape[along] = -1
        starts[..., place] = np.arange(starts.shape[along]).reshape(shape)
    return starts


def _elements(starts: Array, sizes: Sequence[int], places: Sequence[int]) -> tuple[Array, ...]:
    """The indices of all elements of all slices, one array for each dimension: [slices..., sizes...]."""
    count, lead = len(places), starts.ndim - 1
    found = []
    for number, place in enumerate(places):
        inside = np.arange(sizes[place]).reshape([-1 if each == number else 1 for each in range(count)])
        found.append(starts[..., place].reshape(*starts.shape[:-1], *(1,) * count) + inside)
    assert all(each.ndim == lead + count for each in found)
    return tuple(found)


def scatter(operation: Operation) -> Meaning:
    """`scatter`: updates outside of the operand are left out; those of one place follow each other."""
    count = (len(operation.operand_types) - 1) // 2
    update_windows, inserted = map(operation.numbers, ("update_window_dims", "inserted_window_dims"))
    mapped = operation.numbers("scatter_dims_to_operand_dims")
    batch, index_batch = map(operation.numbers, ("input_batching_dims", "scatter_indices_batching_dims"))
    vector, name = operation.number("index_vector_dim"), operation.callee()
    simple = operation.simple(name) if count == 1 else None

    def scattered(*operands: Array) -> Value:
        bases, indices, updates = [np.array(x) for x in operands[:count]], operands[count], operands[count + 1 :]
        shape = bases[0].shape
        rest = [place for place in range(updates[0].ndim) if place not in update_windows]
        turned = [update.transpose((*rest, *update_windows)) for update in updates]
        sizes = [1] * len(shape)
        windows = [place for place in range(len(shape)) if place not in inserted and place not in batch]
        for place, size in zip(windows, turned[0].shape[len(rest) :], strict=True):
            sizes[place] = size
        starts = _starts(indices, vector, mapped, (batch, index_batch), len(shape)).reshape(-1, len(shape))
        parts = [update.reshape(-1, *sizes) for update in turned]
        limits = np.array([whole - size for whole, size in zip(shape, sizes, strict=True)])
        inside = ((starts >= 0) & (starts <= limits)).all(-1)
        starts, parts = starts[inside], [part[inside] for part in parts]
        if simple in REDUCTIONS and bases[0].dtype != bool:
            REDUCTIONS[simple].at(bases[0], _elements(starts, sizes, range(len(shape))), parts[0])
            return operation.results(bases)
        if simple == "second":  # of several for one place the last counts
            bases[0][_elements(starts, sizes, range(len(shape)))] = parts[0]
            return operation.results(bases)
        for number, start in enumerate(starts):
            window = tuple(slice(first, first + size) for first, size in zip(start, sizes, strict=True))
            found = operation.apply(name, *[x[window] for x in bases], *[part[number] for part in parts])
            for x, value in zip(bases, found if isinstance(found, tuple) else (found,), strict=True):
                x[window] = value
        return operation.results(bases)

    return scattered


MEANINGS: dict[str, Callable[[Operation], Meaning]] = {"gather": gather, "scatter": scatter}
