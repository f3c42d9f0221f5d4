"""Arguments and results of the traced function: path in the pytree, type, asked PartitionSpec."""

from __future__ import annotations

from typing import Any

import jax

from ...protocol.events import Value
from ..inputs.callables import Traceable, asked_shardings
from .avals import type_text
from .specs import spec_text


def describe_arguments(call: Traceable, traced: Any) -> tuple[Value, ...]:
    """Each traced argument, in the order of the jaxpr's inputs."""
    given = call.dynamic()
    told = _spread(asked_shardings(call.jitted, "in"), given[0])
    donated = [bool(getattr(info, "donated", False)) for info in jax.tree.leaves(traced.args_info)]
    leaves, _ = jax.tree_util.tree_flatten_with_path(given)
    avals = list(traced.jaxpr.in_avals)[-len(leaves) :] if leaves else []
    names = call.dynamic_names()
    return tuple(
        Value(
            _argument_path(path, names),
            type_text(aval),
            spec_text(told[index] if index < len(told) else None) or spec_text(getattr(leaf, "sharding", None)),
            donated[index] if index < len(donated) else False,
        )
        for index, ((path, leaf), aval) in enumerate(zip(leaves, avals, strict=False))
    )


def describe_results(call: Traceable, traced: Any) -> tuple[Value, ...]:
    """Each result, in the order of the jaxpr's outputs."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(traced.out_info)
    told = _spread(asked_shardings(call.jitted, "out"), traced.out_info)
    return tuple(
        Value(result_path(path), type_text(aval), spec_text(told[index] if index < len(told) else None))
        for index, ((path, _), aval) in enumerate(zip(leaves, traced.jaxpr.out_avals, strict=False))
    )


def result_path(path: Any) -> str:
    """`result`, `result[0]`, `result['loss']`."""
    return f"result{jax.tree_util.keystr(path)}"


def _argument_path(path: Any, names: list[str]) -> str:
    """`x`, `params[0]['w1']`: the parameter's name, then the way inside the argument."""
    side, place, *rest = path
    name = names[place.idx] if side.idx == 0 else str(place.key)
    return f"{name}{jax.tree_util.keystr(tuple(rest))}"


def _spread(prefix: Any, tree: Any) -> list[Any]:
    """One sharding per leaf of `tree`, from a tree prefix in which None says nothing; empty where it does not fit."""
    if prefix is None:
        return []
    spread: list[Any] = []
    try:
        jax.tree.map(
            lambda asked, part: spread.extend([asked] * len(jax.tree.leaves(part))),
            prefix,
            tree,
            is_leaf=lambda asked: asked is None,
        )
    except (ValueError, TypeError):
        return []
    return spread
