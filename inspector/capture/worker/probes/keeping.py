"""Values that are kept of a function evaluated with probes, and how they leave the equations around them.

A digest of a value is computed on the device, so that shards can be compared without moving them. Small values are
moved as they are: a compiler takes milliseconds for each digest, and programs have thousands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..program.avals import entries, is_ref, is_sharded, is_unreduced, summands, type_text, varying
from .sites import Layer, Mapped, Path, Site, When, manual_axes

MAX_SITES = 2000
"""Values, and digests of values, that are taken; of a program that has more, the first ones, and what leaves its
shard_maps."""


@dataclass(slots=True)
class Keeping:
    """The values taken so far, by their keys, those left out as too many, and the equations around this place."""

    sites: dict[str, Site] = field(default_factory=dict, init=False)
    left_out: set[str] = field(default_factory=set, init=False)
    layers: list[Layer] = field(default_factory=list, init=False)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that are manual here."""
        return manual_axes(self.layers)

    @property
    def manual(self) -> bool:
        """True if this is inside a shard_map."""
        return bool(self.axes)

    @property
    def checked(self) -> bool:
        """True if the innermost shard_map has its check on."""
        return next((layer.checked for layer in reversed(self.layers) if isinstance(layer, Mapped)), False)

    def keep_all(self, probes: dict[str, Any], path: Path, when: When, values: Sequence[Any], atoms: Any) -> None:
        """Keep operands or results as they are."""
        for position, (value, atom) in enumerate(zip(values, atoms, strict=True)):
            if has_bits(atom.aval):
                self.keep(probes, path, when, position, summands(plain(value)), atom.aval)

    def keep_digests(
        self, probes: dict[str, Any], path: Path, values: Sequence[Any], atoms: Any, leaving: set[int]
    ) -> None:
        """Keep what tells results apart, except where all devices may differ anyway, or on explicit axes."""
        devices = math.prod(size for layer in self.layers if isinstance(layer, Mapped) for size in layer.sizes)
        for position, (value, atom) in enumerate(zip(values, atoms, strict=True)):
            if not has_bits(atom.aval) or is_unreduced(value) or type(atom).__name__ == "DropVar" or is_sharded(value):
                continue
            if not self.checked or set(self.axes) - set(varying(value)):
                is_needed = id(atom) in leaving
                self.keep(probes, path, "digest", position, comparable(value, devices), atom.aval, is_needed=is_needed)

    def keep(
        self,
        probes: dict[str, Any],
        path: Path,
        when: When,
        position: int,
        value: Any,
        aval: Any = None,
        *,
        is_needed: bool = False,
    ) -> None:
        """Keep one value, with where it is from."""
        value = jnp.asarray(value)
        key = f"{'/'.join(path)}:{when}:{position}"
        if key not in self.sites and len(self.sites) >= MAX_SITES and not is_needed:
            self.left_out.add(key)
            return
        type = type_text(jax.typeof(value) if aval is None else aval)
        self.sites[key] = Site(path, when, position, tuple(self.layers), type)
        probes[key] = self.vary(value)

    def vary(self, value: Any) -> Any:
        """The value, typed as one that varies over all manual axes."""
        if not self.checked:
            return value
        if not (missing := tuple(axis for axis in self.axes if axis not in varying(value))):
            return value
        return lax.pcast(value, missing, to="varying") if hasattr(lax, "pcast") else lax.pvary(value, missing)

    @contextmanager
    def inside(self, layer: Layer) -> Iterator[None]:
        """Nest everything that is evaluated in this context under this equation."""
        self.layers.append(layer)
        try:
            yield
        finally:
            self.layers.pop()

    def buffers(self, body: Callable[[], dict[str, Any]], kept: tuple[int, ...]) -> dict[str, Any]:
        """Zeros for what the loop's body will give, in each of its slots."""
        return {key: self.zeros(one, len(kept) + 1) for key, one in jax.eval_shape(body).items()}

    def stored(
        self, buffers: dict[str, Any], values: dict[str, Any], count: Any, kept: tuple[int, ...]
    ) -> dict[str, Any]:
        """The buffers of these values, with those of one iteration in its slot."""
        slot = jnp.int32(len(kept))
        for number, iteration in enumerate(kept):
            slot = jnp.where(count == iteration, jnp.int32(number), slot)
        slot = self.vary(slot)
        return {key: lax.dynamic_update_index_in_dim(buffers[key], value, slot, 0) for key, value in values.items()}

    def zeros(self, like: Any, *leading: int) -> Any:
        """Zeros of a probe's type, sharded over the explicit axes that it is sharded over."""
        sharding = getattr(like, "sharding", None)
        spec = entries(getattr(sharding, "spec", ()))
        if sharding is not None and any(entry is not None for entry in spec):
            sharding = NamedSharding(sharding.mesh, P(*(None for _ in leading), *spec))
        else:
            sharding = None
        return self.vary(lax.full((*leading, *like.shape), 0, like.dtype, sharding=sharding))


_ODD = np.uint32(0x9E3779B1)
"""A multiplier that spreads bits: 2**32 over the golden ratio."""

MAX_MOVED = 1 << 16
"""Bytes of one value, on all devices together, up to which it is moved."""


def comparable(value: Any, devices: int) -> Any:
    """Return the digest that distinguishes `bits` of different shards on so many devices, or the value itself."""
    value = plain(value)
    return value if value.size * jnp.dtype(value.dtype).itemsize * devices <= MAX_MOVED else digest(value)


def bits(array: Any) -> Any:
    """An array with one more dimension, of the bytes of each element: NaNs and signs of zero count as bits."""
    return np.ascontiguousarray(array)[..., None].view(np.uint8)


def digest(value: Any) -> Any:
    """`uint32[2]`: equal for equal bits, and different for almost all others. NaNs and signs of zero count as bits."""
    words = _words(value)
    place = 2 * lax.iota(jnp.uint32, words.size) + 1
    mixed = (words ^ (words >> 15)) * _ODD
    rows = (mixed ^ (mixed >> 13)) * place, (words * place) ^ (words >> 16)
    return jnp.stack(rows).sum(1, dtype=jnp.uint32)


def has_bits(aval: Any) -> bool:
    """Return whether a type is one of numbers or random keys, and not a token, a reference or nothing at all."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None or not hasattr(aval, "shape") or is_ref(aval):
        return False
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.number, jnp.bool_, jax.dtypes.prng_key))


def plain(value: Any) -> Any:
    """The value itself; of random keys, their data."""
    value = jnp.asarray(value) if not hasattr(value, "dtype") else value
    return jax.random.key_data(value) if jnp.issubdtype(value.dtype, jax.dtypes.prng_key) else value


def _words(value: Any) -> Any:
    value = plain(value)
    if jnp.issubdtype(value.dtype, jnp.bool_):
        return value.ravel().astype(jnp.uint32)
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        value = jnp.stack([value.real, value.imag])
    size = jnp.dtype(value.dtype).itemsize
    if jnp.issubdtype(value.dtype, jnp.integer) and jnp.iinfo(value.dtype).bits < 8:
        return value.ravel().astype(jnp.int32).view(jnp.uint32)
    unsigned = {1: jnp.uint8, 2: jnp.uint16}.get(size, jnp.uint32)
    return lax.bitcast_convert_type(value, unsigned).ravel().astype(jnp.uint32)
