"""What tells the programs of one jitted function apart: types and shardings of arrays, and static arguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

Static = tuple[frozenset[int], frozenset[str]]
"""The positions and names of a jitted function's static arguments."""

NO_STATIC: Static = (frozenset(), frozenset())


class Signature(NamedTuple):
    """The tree of the dynamic arguments, the types of its leaves, and the static arguments."""

    tree: Any
    types: tuple[Any, ...]
    static: tuple[Any, ...]


class Telling(NamedTuple):
    """The parts of signatures that tell those of one function apart; None for all leaves."""

    tree: bool = True
    leaves: tuple[int, ...] | None = None
    static: bool = True

    def of(self, signature: Signature) -> Signature:
        """These parts of a signature."""
        types = signature.types if self.leaves is None else tuple(signature.types[index] for index in self.leaves)
        return Signature(signature.tree if self.tree else None, types, signature.static if self.static else ())


def telling_apart(numbers: Mapping[Signature, int]) -> Telling:
    """Few parts that tell the programs of these signatures apart: a look at each leaf, at each call, costs too much."""
    has_trees = len({signature.tree for signature in numbers}) > 1
    has_static = len({signature.static for signature in numbers}) > 1
    leaves: tuple[int, ...] = ()
    count = 0 if has_trees else len(next(iter(numbers)).types)
    for index in (None, *range(count)):
        wider = leaves if index is None else (*leaves, index)
        telling = Telling(has_trees, wider, has_static)
        groups = {(telling.of(signature), number) for signature, number in numbers.items()}
        keys = len({key for key, _ in groups})
        if keys == len(groups):
            return telling
        if index is not None and keys > len({Telling(has_trees, leaves, has_static).of(each) for each in numbers}):
            leaves = wider
    return Telling()


def signature_of(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], static: Static, telling: Telling | None = None
) -> Signature:
    """The signature of a call, or the parts of it that tell signatures apart."""
    telling = telling or Telling()
    leaves, tree = sys.modules["jax"].tree_util.tree_flatten(dynamic_arguments(args, kwargs, static))
    shown = leaves if telling.leaves is None else [leaves[index] for index in telling.leaves if index < len(leaves)]
    values = static_arguments(args, kwargs, static) if telling.static else ()
    return Signature(tree if telling.tree else None, tuple(map(_type, shown)), values)


def static_of(jit_info: Any) -> Static:
    """The positions and names of a jitted function's static arguments."""
    return (
        frozenset(getattr(jit_info, "static_argnums", None) or ()),
        frozenset(getattr(jit_info, "static_argnames", None) or ()),
    )


def dynamic_arguments(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], static: Static
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments that are traced."""
    positions, names = static
    if not positions and not names:
        return args, kwargs
    dynamic = (arg for index, arg in enumerate(args) if index not in positions and index - len(args) not in positions)
    return tuple(dynamic), {name: value for name, value in kwargs.items() if name not in names}


def static_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any], static: Static) -> tuple[Any, ...]:
    """The others, in the order of their positions and names."""
    positions, names = static
    values = (arg for index, arg in enumerate(args) if index in positions or index - len(args) in positions)
    return (*values, *((name, value) for name, value in sorted(kwargs.items()) if name in names))


def _type(leaf: Any) -> Any:
    aval = getattr(leaf, "aval", None)
    if aval is not None:  # not its sharding, which C++ does not look at, and which depends on what made the array
        is_array = hasattr(leaf, "dtype") and hasattr(leaf, "shape")  # unlike a number with a type
        kind = (leaf.shape, leaf.dtype, getattr(aval, "weak_type", False)) if is_array else aval
        return kind, getattr(leaf, "sharding", None), getattr(leaf, "committed", None)
    return type(leaf), getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
