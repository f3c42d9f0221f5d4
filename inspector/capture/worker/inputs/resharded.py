"""Arguments with other shardings than the script gives them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ...protocol.request import UsageError
from .callables import Arguments, Traceable


def with_shardings(
    args: tuple[Any, ...], kwargs: dict[str, Any], call: Traceable, names: Iterable[str], specs: Mapping[str, str]
) -> Arguments:
    """The arguments of a traced call, those of these paths with other specs, over the mesh of the others.

    Raises:
        UsageError: no argument has a mesh.
    """
    leaves, tree = jax.tree.flatten((args, kwargs))
    dynamic = iter(zip(jax.tree.leaves(call.dynamic()), names, strict=False))
    mesh = next((each.sharding.mesh for each in leaves if isinstance(_sharding(each), NamedSharding)), None)
    if mesh is None:
        raise UsageError("no argument has a mesh", "give one of them a NamedSharding")
    found = []
    wanted = next(dynamic, None)
    for leaf in leaves:
        if wanted is None or leaf is not wanted[0]:
            found.append(leaf)
            continue
        spec = specs.get(wanted[1])
        found.append(leaf if spec is None else _with_sharding(leaf, NamedSharding(mesh, spec_of(spec))))
        wanted = next(dynamic, None)
    changed: Arguments = jax.tree.unflatten(tree, found)
    return changed


def spec_of(text: str) -> PartitionSpec:
    """The spec that is written as `P('x', ('y', 'z'), None)`."""
    call = ast.parse(text, mode="eval").body
    return PartitionSpec(*map(ast.literal_eval, call.args if isinstance(call, ast.Call) else ()))


def _sharding(leaf: Any) -> Any:
    return getattr(leaf, "sharding", None)


def _with_sharding(leaf: Any, sharding: NamedSharding) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return jax.device_put(leaf, sharding)
