"""Arguments and results of the traced function: path in the pytree, type, asked PartitionSpec."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
from jax._src import tree_util

from ...protocol.trace import Value
from ..inputs import wrappers
from ..inputs.callables import Traceable
from ..inputs.paths import argument_path, has_bare_names, result_path, with_variables
from .avals import value_of
from .compiled import leaves_of


def describe(call: Traceable) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Each traced argument and each result, in the order of the jaxpr's inputs and outputs."""
    arguments, results = _arguments(call), _results(call)
    leaves, outputs = jax.tree.leaves(call.dynamic())[: len(arguments)], call.traced.jaxpr.out_avals
    names, paths = [each.path for each in arguments], [each.path for each in results]
    function = inspect.unwrap(call.jitted, stop=lambda each: hasattr(each, "__self__"))
    given, found = with_variables(function, names, leaves, paths, outputs)
    return (
        tuple(replace(each, path=path) for each, path in zip(arguments, given, strict=True)),
        tuple(replace(each, path=path) for each, path in zip(results, found, strict=True)),
    )


def _arguments(call: Traceable) -> tuple[Value, ...]:
    given = call.dynamic()
    specs = _spread(wrappers.requested(call.jitted, "in_shardings"), jax.tree.structure(given[0]))
    layouts = _spread(wrappers.requested(call.jitted, "in_layouts"), jax.tree.structure(given[0]))
    leaves, _ = jax.tree_util.tree_flatten_with_path(given)
    donated = donations(call, len(leaves))
    avals = list(call.traced.jaxpr.in_avals)[-len(leaves) :] if leaves else []
    names = call.dynamic_names()
    known_as = {number: list(paths) for number, paths in call.known_as.items()}
    return tuple(
        value_of(
            _known(leaf, known_as) or argument_path(path, names),
            aval,
            _at(specs, index),
            getattr(leaf, "sharding", None),
            donated=donated[index],
            layout=_layout_text(_at(layouts, index)),
        )
        for index, ((path, leaf), aval) in enumerate(zip(leaves, avals, strict=False))
    )


BUILT_IN = (tuple, list, dict, type(None))


def take_flat_arguments(traced: Any) -> None:
    """Have a traced call lowered and compiled as one of flat arguments, where classes of the script are among them.

    JAX would make trees of what is no array (JAX 0.8 to 0.12, `Traced._in_tree`; before, it does so while it traces).
    """
    tree = getattr(traced, "_in_tree", None)
    if tree is None or not _has_other_nodes(tree):
        return
    registry = getattr(tree_util, "tracing_registry", None)
    flat: tuple[tuple[int, ...], dict[str, int]] = tuple(range(tree.num_leaves)), {}
    traced._in_tree = jax.tree.structure(flat) if registry is None else registry.flatten(flat)[1]


def _has_other_nodes(tree: Any) -> bool:
    node = tree.node_data()
    return node is not None and (node[0] not in BUILT_IN or any(map(_has_other_nodes, tree.children())))


def donations(call: Traceable, count: int) -> list[bool]:
    """Return, for each argument, whether its buffer is donated."""
    flags = getattr(call.traced, "_params", {}).get("donated_invars")
    if flags is None:
        flags = [bool(getattr(info, "donated", False)) for info in leaves_of(call.traced, "args_info")]
    known = list(flags)[-count:] if count else []
    return [*known, *[False] * (count - len(known))]


def _results(call: Traceable) -> tuple[Value, ...]:
    avals = call.traced.jaxpr.out_avals
    paths = call.results or result_paths(call.traced, len(avals))
    specs = _spread(wrappers.requested(call.jitted, "out_shardings"), _out_tree(call.traced))
    layouts = _spread(wrappers.requested(call.jitted, "out_layouts"), _out_tree(call.traced))
    return tuple(
        value_of(path, aval, _at(specs, index), layout=_layout_text(_at(layouts, index)))
        for index, (path, aval) in enumerate(zip(paths, avals, strict=False))
    )


def requested_shardings(call: Traceable) -> list[Any]:
    """The shardings of arguments and results that jit was given."""
    sides = (wrappers.requested(call.jitted, f"{side}_shardings") for side in ("in", "out"))
    return [sharding for side in sides if side is not None for sharding in side[1]]


def _at(shardings: list[Any], index: int) -> Any:
    return shardings[index] if index < len(shardings) else None


def _layout_text(layout: Any) -> str | None:
    """`(1, 0)`: the dimensions from major to minor; None for any layout."""
    order = getattr(layout, "major_to_minor", None)
    return None if order is None else f"({', '.join(map(str, order))}{',' * (len(order) == 1)})"


def _out_tree(traced: Any) -> Any:
    """The structure of the results, which JAX 0.7 keeps to itself; None if it does not say so."""
    return getattr(traced, "out_tree", None) or getattr(traced, "_out_tree", None)


def result_paths(traced: Any, count: int) -> list[str]:
    """Return the paths of the results, as JAX recorded them while tracing.

    It notes `result` for all of them where a class of the script does not take JAX's placeholders. Tracers it takes.
    """
    noted = getattr(getattr(traced.jaxpr.jaxpr, "debug_info", None), "result_paths", None) or ()
    is_noted = len(noted) == len(set(noted)) == count and all(str(path).startswith("result") for path in noted)
    tree = _out_tree(traced)
    if is_noted and tree is not None and not _has_other_nodes(tree):
        return list(noted)
    try:
        paths = _out_paths(traced, count)
    except Exception:  # as a class of the script has it
        if is_noted:
            return list(noted)
        raise
    return list(noted) if is_noted and not has_bare_names(paths) else list(map(result_path, paths))


def _out_paths(traced: Any, count: int) -> list[Any]:
    tree = _out_tree(traced)
    if tree is None or tree.num_leaves != count:
        return [path for path, _ in jax.tree_util.tree_flatten_with_path(traced.out_info)[0]]
    paths: list[Any] = []

    def find(leaves: list[Any]) -> None:
        paths.extend(path for path, _ in jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(tree, leaves))[0])

    avals = traced.jaxpr.out_avals
    jax.eval_shape(find, [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
    return paths


def _known(leaf: Any, known_as: dict[int, list[str]]) -> str | None:
    """The user's path of an array that a wrapper handed on; each of several in turn where it is in several places."""
    paths = known_as.get(id(leaf))
    if not paths:
        return None
    return paths.pop(0) if len(paths) > 1 else paths[0]


def _spread(requested: tuple[Any, list[Any]] | None, tree: Any) -> list[Any]:
    """One sharding per leaf of a tree's structure, None where a prefix says nothing; empty where it does not fit."""
    if requested is None or tree is None:
        return []
    prefix, leaves = requested
    try:
        return list(_spread_over(prefix, iter(leaves), tree))
    except (ValueError, TypeError, StopIteration, RuntimeError):
        return []


def _spread_over(prefix: Any, leaves: Iterator[Any], tree: Any) -> Iterator[Any]:
    if prefix.num_nodes == 1:
        yield from [next(leaves) if prefix.num_leaves else None] * tree.num_leaves
        return
    if prefix.node_data() != tree.node_data():
        raise ValueError("another kind of node")
    for part, whole in zip(prefix.children(), tree.children(), strict=True):
        yield from _spread_over(part, leaves, whole)
