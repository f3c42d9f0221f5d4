"""Arrays that `device_put` brings to other devices, or from the host, outside of programs, and what that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import NamedSharding, Sharding, SingleDeviceSharding

from ...protocol.blocks import Block, by_receiver, received
from ...protocol.trace import MAX_PAIRS, Transferred
from ..program.avals import spec_text, type_text
from .origins import call_on_stack


class Transfers:
    """The transfers of a process, each once that is made on the same line between the same shardings."""

    def __init__(self, write: Callable[[Transferred], None]) -> None:
        self._write = write
        self._known: dict[tuple[Any, ...], Transferred] = {}

    def put(self, value: Any, device: Any) -> None:
        """Record that a value is put to a device, or to those of a sharding; nothing where it stays where it is."""
        target = _sharding(device)
        if target is None or isinstance(value, jax.core.Tracer):
            return
        aval, place = jax.typeof(value), call_on_stack()
        if not getattr(aval, "shape", None):
            return
        source = value.sharding if isinstance(value, jax.Array) else None
        key = (place, type_text(aval), source, target)
        known = self._known.get(key)
        if known is None:
            held = None if source is None else _blocks(source, aval.shape)
            found = received(held, _blocks(target, aval.shape), aval.dtype.itemsize)
            if not any(found.values()):
                return
            known = self._known[key] = _described(len(self._known), place, aval, source, target, found)
        else:
            known = self._known[key] = replace(known, calls=known.calls + 1)
        if known.calls & (known.calls - 1) == 0:
            self._write(known)

    def end(self) -> None:
        """Record how often each was made."""
        for each in self._known.values():
            self._write(each)


def _described(
    number: int, place: Any, aval: Any, source: Any, target: Sharding, found: dict[tuple[int | None, int], int]
) -> Transferred:
    sizes = by_receiver(found).values()
    pairs = tuple((sender, device, size) for (sender, device), size in found.items() if sender is not None)
    return Transferred(
        number,
        place,
        type_text(aval),
        "host" if source is None else _text(source),
        _text(target),
        1,
        max(sizes),
        sum(sizes),
        pairs[:MAX_PAIRS],
    )


def _text(sharding: Sharding) -> str:
    """A spec with the axes of its mesh, a single device, or how many there are."""
    if isinstance(sharding, NamedSharding):
        axes = ", ".join(f"{name}={size}" for name, size in sharding.mesh.shape.items())
        return f"{spec_text(sharding)} of {axes}"
    if len(sharding.device_set) == 1:
        return f"device {next(iter(sharding.device_set)).id}"
    return f"{len(sharding.device_set)} devices"


def _sharding(device: Any) -> Sharding | None:
    device = getattr(device, "sharding", device)  # of a Format
    if isinstance(device, jax.Device):
        return SingleDeviceSharding(device)
    return device if isinstance(device, Sharding) else None


def _blocks(sharding: Sharding, shape: Sequence[int]) -> dict[int, Block]:
    indices = sharding.devices_indices_map(tuple(shape))
    return {
        device.id: tuple(part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
        for device, index in indices.items()
        if index is not None
    }
