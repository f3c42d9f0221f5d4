"""The user's names for the axes that a collective runs over."""

from __future__ import annotations

from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from ...parsers.sharding_syntax.replica_groups import Groups, MeshGroups, Pairs, ReplicaGroups
from ..ir.mesh_axes import axes_of_groups, axes_of_pairs


def named_axes(
    spelled: ReplicaGroups | None, groups: Groups, pairs: Pairs, meshes: tuple[MeshSyntax, ...]
) -> tuple[AxisRef, ...] | None:
    """The axes of the first mesh that forms these groups or pairs; a mesh with the names in the text comes first."""
    named = {axis.name for axis in spelled.axes} if isinstance(spelled, MeshGroups) else set()
    for mesh in sorted(meshes, key=lambda mesh: not named <= {name for name, _ in mesh.axes}):
        axes = axes_of_pairs(pairs, mesh) if pairs else axes_of_groups(groups, mesh) if groups else None
        if axes is not None:
            return axes
    return None
