"""Arguments and results of the traced function: path in the pytree, type, asked PartitionSpec."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from ...protocol.events import Value
from ..inputs import wrappers
from ..inputs.callables import Traceable
from .avals import spec_text, type_text


def describe_arguments(call: Traceable) -> tuple[Value, ...]:
    """Each traced argument, in the order of the jaxpr's inputs."""
    given = call.dynamic()
    told = _spread(wrappers.asked_shardings(call.jitted, "in"), given[0])
    donated = [bool(getattr(info, "donated", False)) for info in jax.tree.leaves(call.traced.args_info)]
    leaves, _ = jax.tree_util.tree_flatten_with_path(given)
    avals = list(call.traced.jaxpr.in_avals)[-len(leaves) :] if leaves else []
    names = call.dynamic_names()
    known_as = {number: list(paths) for number, paths in call.known_as.items()}
    return tuple(
        Value(
            _known(leaf, known_as) or _argument_path(path, names),
            type_text(aval),
            spec_text(told[index] if index < len(told) else None) or spec_text(getattr(leaf, "sharding", None)),
            donated[index] if index < len(donated) else False,
        )
        for index, ((path, leaf), aval) in enumerate(zip(leaves, avals, strict=False))
    )


def describe_results(call: Traceable) -> tuple[Value, ...]:
    """Each result, in the order of the jaxpr's outputs."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(call.traced.out_info)
    told = _spread(wrappers.asked_shardings(call.jitted, "out"), call.traced.out_info)
    return tuple(
        Value(
            call.results[index] if call.results else result_path(path),
            type_text(aval),
            spec_text(told[index] if index < len(told) else None),
        )
        for index, ((path, _), aval) in enumerate(zip(leaves, call.traced.jaxpr.out_avals, strict=False))
    )


def compiled_shardings(compiled: Any, side: str) -> list[Any]:
    """Those of the `input` or `output`; none where others are beside them, as in a program that writes to Refs."""
    try:
        return list(jax.tree.leaves(getattr(compiled, f"{side}_shardings"), is_leaf=lambda leaf: leaf is None))
    except ValueError:
        return []


def with_actual(values: tuple[Value, ...], leaves: list[Any]) -> tuple[Value, ...]:
    """The same with the shardings of the compiled program; unchanged where those are of others."""
    if len(leaves) != len(values):
        return values
    return tuple(replace(value, actual=spec_text(leaf)) for value, leaf in zip(values, leaves, strict=True))


def result_path(path: Any) -> str:
    """`result`, `result[0]`, `result['loss']`."""
    return f"result{jax.tree_util.keystr(path)}"


def _known(leaf: Any, known_as: dict[int, list[str]]) -> str | None:
    """The user's path of an array that a wrapper handed on; each of several in turn where it is in several places."""
    paths = known_as.get(id(leaf))
    if not paths:
        return None
    return paths.pop(0) if len(paths) > 1 else paths[0]


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
