"""Devices of a program, and keys of meshes: a PartitionSpec does not say which of those with its axes is meant."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.sharding import AbstractMesh

from ...protocol.events import ABSTRACT, key_of_axes


def key_of(*shardings: Any) -> str | None:
    """Return the key of the mesh of the first of some shardings that has a mesh with axes."""
    for sharding in shardings:
        mesh = getattr(sharding, "mesh", None)
        if getattr(mesh, "axis_names", ()):
            return mesh_key(mesh)
    return None


def mesh_key(mesh: Any) -> str:
    """`a=8,b=1`; `a=8,b=1 (1c291ca3)`, a digest of the devices, where these are not 0, 1, 2, …."""
    axes = key_of_axes((name, mesh.shape[name]) for name in mesh.axis_names)
    if isinstance(mesh, AbstractMesh):
        return f"{axes}{ABSTRACT}"
    ids = np.asarray(mesh.device_ids, np.int64).ravel()
    in_order = bool(np.array_equal(ids, np.arange(ids.size)))
    return axes if in_order else f"{axes} ({zlib.crc32(ids.astype('<i8').tobytes()):08x})"


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
