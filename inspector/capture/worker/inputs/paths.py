"""Paths of leaves in pytrees, as one would write them to get there.

Steps of Keras take lists of the values of variables, and return such lists: `state[0][1]` is then
`state[0]['up']['kernel']`, the way to it in `model.get_state_tree()`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax

from ..script_objects import closed_over, is_a


def path_text(path: Any) -> str:
    """`[0]['w'].kernel`: as JAX writes it, with a dot where a class of the script gives its children bare names."""
    return "".join(map(_step, path))


def _step(key: Any) -> str:
    text: str = jax.tree_util.keystr((key,))
    if text.startswith((".", "[")):
        return text
    return f".{text}" if text.isidentifier() else f"[{key!r}]"


_INDEX = re.compile(r"\[<flat index (\d+)>\]")
"""JAX's key of a child of a class that gives none."""


def without_only_indices(names: list[str]) -> list[str]:
    """Names without the keys that JAX counts children by, where there is one child: a named array of Haliax is it."""
    several = {name[: index.start()] for name in names for index in _INDEX.finditer(name) if index[1] != "0"}
    return [
        _INDEX.sub(lambda index: index[0] if index.string[: index.start()] in several else "", name) for name in names
    ]


def has_bare_names(paths: Any) -> bool:
    """Return whether JAX joins bare names in any of these paths."""
    return any(path_text(path) != jax.tree_util.keystr(path) for path in paths)


def argument_path(path: Any, names: list[str]) -> str:
    """`x`, `params[0]['w1']`: the parameter's name, then the way inside the argument; of (positional, by name)."""
    side, place, *rest = path
    name = names[place.idx] if side.idx == 0 else str(place.key)
    return f"{name}{path_text(rest)}"


def result_path(path: Any) -> str:
    """`result`, `result[0]`, `result['loss']`."""
    return f"result{path_text(path)}"


_INDEXED = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)

Shape = tuple[int, ...]


class Group(NamedTuple):
    """Variables that are handed on as one list: the keys of each, its shape, and what may stand for it in a call."""

    keys: list[str]
    shapes: list[Shape]
    held: list[tuple[Any, ...]]


def with_variables(
    function: Any, names: list[str], leaves: Sequence[Any], results: list[str], outputs: Sequence[Any]
) -> tuple[list[str], list[str]]:
    """The names of arguments and results, in which those of variables' values have the variables' own.

    The step of a trainer takes and returns all of its variables in an order that Keras defines. In another function
    arguments are known by identity, and then the lists of results that have their shapes.
    """
    keras = sys.modules.get("keras")
    if not isinstance(model := getattr(keras, "Model", None), type):
        return names, results
    given, found = list(names), list(results)
    try:
        of_step = _of_step(function, model)
        groups = of_step or list(_within_reach(function, model, getattr(keras, "Optimizer", model)))
        taken = _rename(given, list(map(_shape, leaves)), groups, leaves if not of_step else ())
        _rename(found, list(map(_shape, outputs)), of_step or [each for each in taken if len(each.keys) > 1], ())
    except Exception:  # Keras keeps its variables in another way: the indices stay
        return names, results
    return given, found


def _shape(leaf: Any) -> Shape:
    return tuple(getattr(leaf, "shape", ()))


def _of_step(function: Any, model: type) -> list[Group]:
    """The variables of the trainer that a step belongs to, in the order in which it takes them."""
    owner = getattr(function, "__self__", None)
    if owner is None and str(getattr(function, "__module__", "")).partition(".")[0] == "keras":
        owner = next((each for each in closed_over(function).values() if isinstance(each, model)), None)
    return list(map(_group, _lists(owner))) if isinstance(owner, model) else []


def _within_reach(function: Any, model: type, optimizer: type) -> Iterator[Group]:
    known = [*closed_over(function).values(), *getattr(function, "__globals__", {}).values()]
    for each in {id(each): each for each in known}.values():
        if is_a(each, model):
            yield from map(_group, (*_lists(each), getattr(each, "variables", ())))
        elif is_a(each, optimizer):
            yield _group(each.variables)


def _lists(owner: Any) -> list[Sequence[Any]]:
    optimizer = getattr(getattr(owner, "optimizer", None), "variables", None) or ()
    return [
        owner.trainable_variables,
        owner.non_trainable_variables,
        optimizer,
        getattr(owner, "metrics_variables", None) or (),
    ]


def _group(variables: Sequence[Any]) -> Group:
    return Group(
        ["".join(f"[{key!r}]" for key in str(each.path).split("/")) for each in variables],
        [tuple(each.shape) for each in variables],
        [(each, getattr(each, "_value", None)) for each in variables],
    )


def _rename(names: list[str], shapes: list[Shape], groups: Sequence[Group], leaves: Sequence[Any]) -> list[Group]:
    """Rename the lists that are groups, each once, in order; with leaves, only those that the variables hold."""
    lists: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        indexed = _INDEXED.fullmatch(name)
        if indexed is not None:
            lists.setdefault(indexed[1], []).append(place)
    left, taken = list(groups), []
    for around, places in lists.items():
        for number, group in enumerate(left):
            fits = bool(places) and [shapes[place] for place in places] == group.shapes
            is_held = fits and all(
                not leaves or any(leaves[place] is each for each in held)
                for place, held in zip(places, group.held, strict=True)
            )
            if is_held and len(set(group.keys)) == len(group.keys):
                for place, keys in zip(places, group.keys, strict=True):
                    names[place] = f"{around}{keys}"
                taken.append(group)
                left = left[number + 1 :] if not leaves else [each for each in left if each is not group]
                break
    return taken
