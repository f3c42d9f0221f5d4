"""Programs that run on the devices of several processes, which have to be equal in all of them."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from ..program.devices import partition_devices


class Shared(NamedTuple):
    """A program of several processes: how many, what it runs on, and what is equal where they run the same."""

    processes: int
    device_ids: tuple[int, ...]
    fingerprint: str
    stablehlo: bytes


def shared(computation: Any) -> Shared | None:
    """Return what several processes share of a program that JAX lowered; None for a program of one process alone."""
    devices = partition_devices(computation)
    processes = {device.process_index for device in devices}
    if len(processes) < 2:
        return None
    operation = computation._hlo.operation
    ids = tuple(int(device.id) for device in devices)
    options = sorted(map(repr, getattr(computation, "_compiler_options_kvs", ())))
    same = hashlib.sha256(operation.get_asm(enable_debug_info=False).encode())
    same.update(repr((ids, options)).encode())
    located = operation.get_asm(enable_debug_info=True)
    return Shared(len(processes), ids, same.hexdigest()[:16], located.encode())
