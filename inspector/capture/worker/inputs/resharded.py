"""Arguments and results with other shardings than the script gives them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ...protocol.events import Value
from ...protocol.request import UsageError
from . import callables, wrappers
from .callables import Arguments, Traceable
from .wrappers import jax_jit

KEPT = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
"""Options of a jit that stay where it is made again with other shardings."""


def with_shardings(
    function: Any,
    given: Arguments,
    call: Traceable,
    described: tuple[tuple[Value, ...], tuple[Value, ...]],
    specs: Mapping[str, str],
) -> tuple[Any, Arguments]:
    """A traced function and its arguments, with other specs for arguments and results of these paths.

    A jit that names shardings is made again without those of arguments, which have them themselves then.

    Raises:
        UsageError: no argument has a mesh.
    """
    leaves, tree = jax.tree.flatten(given)
    named = [
        each for side in ("in", "out") for each in (wrappers.requested(call.jitted, f"{side}_shardings") or ((), []))[1]
    ]
    known = (getattr(each, "sharding", each) for each in (*leaves, *named))
    mesh = next((each.mesh for each in known if isinstance(each, NamedSharding)), None)
    if mesh is None:
        raise UsageError("no argument has a mesh", "give one of them a NamedSharding")
    inner, bound, keywords = callables.unwrap(function)
    is_made = wrappers.is_jitted(inner) and any(isinstance(each, NamedSharding) for each in named)
    arguments, results = described
    found = []
    dynamic = iter(zip(jax.tree.leaves(call.dynamic()), arguments, strict=False))
    wanted = next(dynamic, None)
    for leaf in leaves:
        if wanted is None or leaf is not wanted[0]:
            found.append(leaf)
            continue
        spec = specs.get(wanted[1].path, wanted[1].spec if is_made else None)
        found.append(leaf if spec is None else _with_sharding(leaf, NamedSharding(mesh, spec_of(spec))))
        wanted = next(dynamic, None)
    args, kwargs = jax.tree.unflatten(tree, found)
    if not is_made:
        return function, (args, kwargs)
    info = getattr(inner, wrappers.ATTRIBUTE)
    asked = [specs.get(each.path, each.spec) for each in results]
    outputs = [None if spec is None else NamedSharding(mesh, spec_of(spec)) for spec in asked]
    again = jax_jit(
        inner.__wrapped__,
        out_shardings=jax.tree.unflatten(jax.tree.structure(call.traced.out_info), outputs),
        **{name: getattr(info, name, None) or None for name in KEPT[:4]},
        **{name: bool(getattr(info, name, False)) for name in KEPT[4:]},
    )
    return again, ((*bound, *args), {**keywords, **kwargs})


def spec_of(text: str) -> PartitionSpec:
    """The spec that is written as `P('x', ('y', 'z'), None)`."""
    call = ast.parse(text, mode="eval").body
    return PartitionSpec(*map(ast.literal_eval, call.args if isinstance(call, ast.Call) else ()))


def _with_sharding(leaf: Any, sharding: NamedSharding) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return jax.device_put(leaf, sharding)
