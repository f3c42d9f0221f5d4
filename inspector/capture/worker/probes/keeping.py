"""Values that are kept of a function evaluated with probes, and how they leave the equations around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..program.avals import entries, is_sharded, is_unreduced, summands, type_text, varying
from .digests import comparable, has_bits, plain
from .sites import Layer, Mapped, Path, Site, When

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
        return tuple(axis for layer in self.layers if isinstance(layer, Mapped) for axis in layer.axes)

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
