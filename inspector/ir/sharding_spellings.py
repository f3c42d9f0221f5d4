"""Conversion of every spelling of a sharding to the one in `sharding.py`, and back.

Sources: Shardy, docs/sharding_representation.md; XLA, xla/hlo/ir/hlo_sharding.h and named_sharding.h;
JAX, jax/_src/named_sharding.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from ...parsers.mlir.sdy import DimensionSharding
from ...parsers.mlir.sdy import Sharding as SdySharding
from ...parsers.sharding_syntax import gspmd
from ...parsers.sharding_syntax.jax_arrays import ArrayType, PartitionSpec
from ...parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from .array_sharding import ArraySharding, merged
from .meshes import partitions_of
from .placement import ANONYMOUS, axes_of_tiles, indices


def from_spec(spec: PartitionSpec, mesh: MeshSyntax, rank: int) -> ArraySharding:
    """A NamedSharding; raises ValueError when it does not fit the mesh or the rank."""
    if len(spec.entries) > rank:
        raise ValueError(f"{spec} has {len(spec.entries)} entries for {rank} dimensions")
    entries = (*spec.entries, *((),) * (rank - len(spec.entries)))
    dims = tuple(DimensionSharding(_whole(axes or ()), is_open=axes is None) for axes in entries)
    return ArraySharding(mesh, dims, unreduced=_whole(spec.unreduced), reduction=spec.reduction)


def from_type(type: ArrayType, mesh: MeshSyntax) -> ArraySharding:
    """Return the sharding in an explicit type; raises ValueError if the mesh lacks its axes."""
    dims = tuple(DimensionSharding(_whole(axes)) for axes in type.axes)
    return ArraySharding(mesh, dims, unreduced=_whole(type.unreduced))


def from_sdy(sharding: SdySharding, meshes: Mapping[str, MeshSyntax], manual: Sequence[AxisRef] = ()) -> ArraySharding:
    """Shardy's attribute, in the body of shard_maps over `manual` axes; raises ValueError for an unknown mesh."""
    mesh = meshes.get(sharding.mesh) if isinstance(sharding.mesh, str) else sharding.mesh
    if mesh is None:
        raise ValueError(f"there is no mesh @{sharding.mesh}")
    return ArraySharding(
        mesh, sharding.dims, sharding.replicated, sharding.unreduced, tuple(manual), sharding.reduction
    )


def from_gspmd(sharding: gspmd.Sharding, rank: int, mesh: MeshSyntax) -> ArraySharding:
    """HLO's attribute on an array, with the axes of `mesh` where parts of these form it, else with axes of its own.

    Raises ValueError for a tuple, for `unknown`, and when the ranks differ.
    """
    match sharding:
        case gspmd.UniformSharding(kind):
            return _uniform(kind, mesh, rank)
        case gspmd.MaximalSharding(device):
            return ArraySharding(MeshSyntax((), (device,)), (DimensionSharding(()),) * rank)
        case gspmd.MeshSharding(own, dims, kind):
            if kind is not None:
                # Without axes and devices, `{mesh[], replicated}`, it is the same on every device of any mesh.
                return _uniform(kind, own if own.axes or own.device_ids else mesh, rank, sharding.unreduced_kind)
            found = tuple(DimensionSharding(dim.axes, dim.is_open) for dim in dims) or (DimensionSharding(()),) * rank
            _check_rank(len(found), rank)
            reduction = sharding.unreduced_kind or "sum"
            return ArraySharding(own, found, sharding.replicated, sharding.unreduced, sharding.manual, reduction)
        case gspmd.TiledSharding(tiles, devices, subgroups):
            _check_rank(len(sharding.dims), rank)
            axes = axes_of_tiles(tiles, devices, mesh)
            if axes is None:
                mesh = MeshSyntax(tuple((f"{ANONYMOUS}{n}", size) for n, size in enumerate(tiles)), devices)
                axes = tuple(merged((AxisRef(name),), mesh) for name, _ in mesh.axes)
            states: dict[str, tuple[AxisRef, ...]] = {}
            for kind, along in zip(subgroups, axes[rank:], strict=True):
                states[kind] = (*states.get(kind, ()), *along)
            unreduced, manual = states.get("unreduced", ()), states.get("manual", ())
            return ArraySharding(mesh, tuple(map(DimensionSharding, axes[:rank])), unreduced=unreduced, manual=manual)
        case gspmd.TupleSharding():
            raise ValueError("a tuple has a sharding for each element")


def as_gspmd(sharding: ArraySharding) -> gspmd.Sharding:
    """HLO's spelling in its first version: tiles, and devices in their order."""
    mesh = sharding.mesh
    if not mesh.axes:
        return gspmd.MaximalSharding(partitions_of(mesh)[0])
    states = [("manual", sharding.manual), ("unreduced", sharding.unreduced)]
    named = [(kind, axes, sharding.size_along(axes)) for kind, axes in states if axes]
    for kind, _, size in named:
        if size == mesh.size:
            return gspmd.UniformSharding(kind)
    used = (*sharding.sharded, *chain.from_iterable(axes for _, axes, _ in named))
    if sharding.size_along(used) == 1:
        return gspmd.UniformSharding("replicated")
    rest = tuple(axis for axis, _ in mesh.split(used) if axis not in used)
    if sharding.copies > 1:
        named.append(("replicated", rest, sharding.copies))
    order = (*sharding.sharded, *chain.from_iterable(axes for _, axes, _ in named), *(() if named else rest))
    numbers = indices(order, mesh, range(mesh.size))
    placed = sorted(zip(numbers, partitions_of(mesh), strict=True))
    return gspmd.TiledSharding(
        (*sharding.parts, *(size for _, _, size in named)),
        tuple(device for _, device in placed),
        tuple(kind for kind, _, _ in named),
    )


def _uniform(kind: str, mesh: MeshSyntax, rank: int, reduction: str | None = None) -> ArraySharding:
    dims = (DimensionSharding(()),) * rank
    every = tuple(AxisRef(name) for name, _ in mesh.axes)
    match kind:
        case "replicated":
            return ArraySharding(mesh, dims)
        case "manual":
            return ArraySharding(mesh, dims, manual=every)
        case "unreduced":
            return ArraySharding(mesh, dims, unreduced=every, reduction=reduction or "sum")
    raise ValueError(f"a sharding that is {kind} does not say where anything is")


def _check_rank(found: int, rank: int) -> None:
    if found != rank:
        raise ValueError(f"a sharding of {found} dimensions for a value of {rank}")


def _whole(names: Sequence[str]) -> tuple[AxisRef, ...]:
    return tuple(map(AxisRef, names))
