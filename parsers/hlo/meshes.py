"""The meshes that replica groups and shardings in an HLO text are over: XLA of JAX 0.11 and later prints them."""

from __future__ import annotations

import re
from functools import partial

from ..errors import readable
from ..sharding_syntax.mesh import MeshSyntax
from ..sharding_syntax.replica_groups import parse_mesh

_MESH = re.compile(rb"mesh\[[^\]\n]++\](?:,\s*+device_ids\s*+=\s*+\((?:[^()\n]|\([^()\n]*+\))*+\))?+")
_MADE_UP = re.compile(r"_?axis_\d+")
"""What the partitioner calls the axes of a mesh that it makes for groups which came without one."""


def meshes_in(data: bytes) -> tuple[MeshSyntax, ...]:
    """The meshes of a text, each once, in their order, but for those that are the partitioner's own."""
    # Most texts have none, and to find that out is ten times as fast as to look for the pattern.
    texts = dict.fromkeys(_MESH.findall(data) if b"mesh[" in data else ())
    meshes = [readable(partial(parse_mesh, text.decode("utf-8", "replace"))) for text in texts]
    return tuple(dict.fromkeys(mesh for mesh in meshes if mesh is not None and not _is_made_up(mesh)))


def _is_made_up(mesh: MeshSyntax) -> bool:
    return all(_MADE_UP.fullmatch(name) for name, _ in mesh.axes)
