"""Arrays of which each device holds but a summand. JAX can neither take them apart nor make them of values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ..program.avals import entries

REDUCTIONS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""Reductions, by the name of a kind of unreduced axes (`PartitionSpec.unreduced_kind`, since JAX 0.12)."""


class Part(NamedTuple):
    """The part of an array that one device holds, and its position in the full value."""

    device: Any
    where: tuple[slice, ...]
    data: Any


def is_partial(sharding: Any) -> bool:
    """Return whether an array of this sharding holds summands of the same elements on several devices."""
    return bool(getattr(getattr(sharding, "spec", None), "unreduced", None))


def parts_of(array: Any) -> list[Part]:
    """Return the parts of an array on the devices of this process."""
    if not is_partial(array.sharding):
        return [Part(shard.device, shard.index, shard.data) for shard in array.addressable_shards]
    places = _places(array.sharding, array.shape)
    held = [array.addressable_data(number) for number in range(len(array.sharding.addressable_devices))]
    return [Part(device, places[device], data) for data in held for device in data.devices()]


def places_on(array: Any) -> dict[int, tuple[int, ...]]:
    """Return the coordinates on the array's mesh of each device, by its id."""
    mesh = getattr(array.sharding, "mesh", None)
    return {} if mesh is None else {d.id: tuple(map(int, place)) for place, d in np.ndenumerate(mesh.devices)}


def whole(array: Any) -> Any:
    """The value in full, reduced where the program leaves that undone.

    Raises:
        NotImplementedError: it would be reduced in an unknown way.
    """
    if not is_partial(getattr(array, "sharding", None)):
        return np.asarray(array)
    reduce, numbers = _reduction(array.sharding), _numbers(array.sharding)
    found: dict[str, Part] = {}
    for part in parts_of(array):
        if part.device in numbers:
            key, own = str(part.where), np.asarray(part.data)
            found[key] = part._replace(data=reduce(found[key].data, own) if key in found else own)
    result = np.zeros(array.shape, array.dtype)
    for part in found.values():
        result[part.where] = part.data
    return result


def placed(value: Any, sharding: Any) -> Any:
    """A value as an array of summands: halves, quarters, eighths of it, or, of integers, itself and zeros."""
    value = np.asarray(value)
    count = math.prod(sharding.mesh.shape[axis] for axis in sharding.spec.unreduced)
    if _reduction(sharding) is not np.add:
        shares = [1.0] * count
    elif jnp.issubdtype(value.dtype, jnp.inexact):
        shares = [0.5 ** min(number + 1, count - 1) for number in range(count)]
    else:
        shares = [1.0, *[0.0] * (count - 1)]
    places = _places(sharding, value.shape)
    arrays = [
        jax.device_put((value[places[device]] * shares[number]).astype(value.dtype), device)
        for device, number in _numbers(sharding, replicas=True).items()
        if device in sharding.addressable_devices
    ]
    return jax.make_array_from_single_device_arrays(value.shape, sharding, arrays)


def _places(sharding: Any, shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
    tiled = NamedSharding(sharding.mesh, PartitionSpec(*entries(sharding.spec)))
    return dict(tiled.devices_indices_map(shape))


def _reduction(sharding: Any) -> Any:
    kind = getattr(sharding.spec, "unreduced_kind", None)
    name = str(getattr(kind, "name", kind) or "sum").lower()
    if name not in REDUCTIONS:
        raise NotImplementedError(f"values that are still to be reduced by {name!r} are not put together")
    return REDUCTIONS[name]


def _numbers(sharding: Any, replicas: bool = False) -> dict[Any, int]:
    """The number of each device among those with summands of the same elements; one of each set of replicas alone."""
    mesh, unreduced = sharding.mesh, sharding.spec.unreduced
    used = {name for entry in entries(sharding.spec) for name in (entry if isinstance(entry, tuple) else (entry,))}
    found: dict[Any, int] = {}
    numbers: dict[tuple[int, ...], int] = {}
    for place, device in np.ndenumerate(mesh.devices):
        coordinates = dict(zip(mesh.axis_names, place, strict=True))
        if replicas or not any(at for name, at in coordinates.items() if name not in used and name not in unreduced):
            summand = tuple(at for name, at in coordinates.items() if name in unreduced)
            found[device] = numbers.setdefault(summand, len(numbers))
    return found
