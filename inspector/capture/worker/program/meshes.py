"""The meshes of a program: where they are found, and as data."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, MethodType
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from ...protocol import events
from .structure import equations_of

DEEPEST = 8
"""How many closures, one in another, are searched."""


def describe(meshes: Iterable[Any], namespace: Mapping[str, Any]) -> list[events.Mesh]:
    """The distinct meshes as the subject has them, in the order given.

    A mesh without devices counts only where no mesh with devices has its axes.
    """
    names = {_key(value): name for name, value in reversed(list(namespace.items())) if _is_mesh(value)}
    concrete: dict[Any, events.Mesh] = {}
    abstract: dict[Any, events.Mesh] = {}
    for mesh in meshes:
        if mesh.axis_names:
            found = abstract if isinstance(mesh, AbstractMesh) else concrete
            found.setdefault(_key(mesh), _described(mesh, names.get(_key(mesh))))
    known = {_axes_key(mesh) for mesh in concrete.values()}
    return [*concrete.values(), *(each for each in abstract.values() if _axes_key(each) not in known)]


def in_namespace(namespace: Mapping[str, Any]) -> Iterator[Any]:
    """The meshes among a script's globals, alone or in a sharding."""
    return _in_values(list(namespace.values()), Mesh)


def in_context() -> Iterator[Any]:
    """The mesh that `jax.set_mesh` has set."""
    for name in ("get_mesh", "get_abstract_mesh"):
        try:
            mesh = getattr(jax.sharding, name)()
        except (AttributeError, ValueError):
            continue
        if mesh is not None and mesh.axis_names:
            yield mesh


def in_function(function: Any) -> Iterator[Any]:
    """The meshes that a function carries in its closures: that is where `shard_map` keeps its own."""
    seen: set[int] = set()
    level = [function]
    for _ in range(DEEPEST):
        fresh = {id(value): value for value in level if id(value) not in seen}
        seen |= fresh.keys()
        yield from filter(_is_mesh, fresh.values())
        level = [held for value in fresh.values() for held in _held_by(value) if callable(held) or _is_mesh(held)]


def _held_by(function: Any) -> Iterable[Any]:
    if isinstance(function, functools.partial):
        return (function.func, *function.args, *function.keywords.values())
    if isinstance(function, MethodType):
        return (function.__func__,)
    cells = getattr(function, "__closure__", None) or ()
    return (getattr(function, "__wrapped__", None), *map(_contents, cells))


def in_jaxpr(jaxpr: Any) -> Iterator[Any]:
    """The meshes of shard_maps and shardings among the parameters of all equations."""
    for equation in equations_of(jaxpr):
        for value in equation.params.values():
            yield from _in_values(value if isinstance(value, (tuple, list)) else (value,))


def in_shardings(leaves: Iterable[Any]) -> Iterator[Any]:
    """The meshes of the arrays, types or shardings among `leaves`."""
    return _in_values(leaf if isinstance(leaf, NamedSharding) else getattr(leaf, "sharding", None) for leaf in leaves)


def _in_values(values: Iterable[Any], kinds: Any = (Mesh, AbstractMesh)) -> Iterator[Any]:
    for value in values:
        if isinstance(value, kinds):
            yield value
        elif isinstance(value, NamedSharding):
            yield value.mesh


def _is_mesh(value: Any) -> bool:
    return isinstance(value, (Mesh, AbstractMesh))


def _described(mesh: Any, name: str | None) -> events.Mesh:
    types = getattr(mesh, "axis_types", None) or ("Auto",) * len(mesh.axis_names)
    axes = tuple(
        events.MeshAxis(str(axis), int(mesh.shape[axis]), _type(kind))
        for axis, kind in zip(mesh.axis_names, types, strict=True)
    )
    ids = range(mesh.size) if isinstance(mesh, AbstractMesh) else mesh.device_ids.flat
    return events.Mesh(axes, tuple(int(i) for i in ids), name)


def _type(kind: Any) -> Any:
    return getattr(kind, "name", str(kind)).lower()


def _key(mesh: Any) -> Any:
    if isinstance(mesh, AbstractMesh):
        return mesh.axis_names, mesh.axis_sizes
    return mesh.axis_names, np.shape(mesh.devices), tuple(mesh.device_ids.flat)


def _axes_key(mesh: events.Mesh) -> Any:
    return tuple((axis.name, axis.size) for axis in mesh.axes)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
