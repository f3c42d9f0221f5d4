"""The devices of a program, those of other processes too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def partition_devices(computation: Any) -> Sequence[Any]:
    """The devices that a lowered program is for, in the order of its partitions; none where JAX does not say.

    `computation` is a `pxla.MeshComputation`, whose list of devices JAX holds in a private attribute (0.7 to 0.12).
    """
    given = getattr(computation, "compile_args", {})
    found = getattr(computation, "_device_list", None) or given.get("device_list") or given.get("device_assignment")
    return tuple(found or ())


def devices_of(lowered: Any, executable: Any) -> list[Any]:
    """The devices of a compiled program; of `executable` JAX says those of this process alone."""
    found = partition_devices(getattr(lowered, "_lowering", None))
    own = list(executable.local_devices())
    return list(found) if len(found) > len(own) else own
