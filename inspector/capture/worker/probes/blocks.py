"""A shard_map's blocks, stacked in one array: what `in_specs` cut a value into, and `out_specs` put together."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from ..program.specs import entries


def split(value: Any, spec: Any, axes: tuple[str, ...], sizes: dict[str, int]) -> Any:
    """The blocks of all devices: a leading dimension for each of `axes`, in their order."""
    shape: list[int] = []
    where: dict[str, int] = {}
    for size, names in zip(value.shape, _entries(spec, value.ndim), strict=True):
        for name in names:
            where[name] = len(shape)
            shape.append(sizes[name])
        shape.append(size // math.prod(sizes[name] for name in names))
    named = [where[axis] for axis in axes if axis in where]
    blocks = jnp.moveaxis(value.reshape(shape), named, range(len(named)))
    for number, axis in enumerate(axes):
        if axis not in where:
            blocks = jnp.stack([blocks] * sizes[axis], number)
    return blocks


def assemble(blocks: Any, spec: Any, axes: tuple[str, ...]) -> Any:
    """The value that blocks make; along an axis that the spec does not name, the first one counts."""
    entries = _entries(spec, blocks.ndim - len(axes))
    named = {name for names in entries for name in names}
    for number in reversed(range(len(axes))):
        if axes[number] not in named:
            blocks = blocks[(slice(None),) * number + (0,)]
    left = [axis for axis in axes if axis in named]
    order: list[int] = []
    shape: list[int] = []
    for dimension, names in enumerate(entries):
        order += [left.index(name) for name in names] + [len(left) + dimension]
        shape.append(math.prod(blocks.shape[place] for place in order[len(order) - len(names) - 1 :]))
    return blocks.transpose(order).reshape(shape)


def _entries(spec: Any, rank: int) -> list[tuple[str, ...]]:
    """For each dimension the axes that are named for it."""
    named = [e if isinstance(e, tuple) else () if e is None else (e,) for e in entries(spec)]
    return [*named, *[()] * (rank - len(named))]
