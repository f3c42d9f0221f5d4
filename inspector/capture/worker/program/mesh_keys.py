"""Keys of meshes: a PartitionSpec alone does not say which of several meshes with axes of the same names is meant."""

from __future__ import annotations

import zlib
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
