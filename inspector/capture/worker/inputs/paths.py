"""Paths of leaves in pytrees, as one would write them to get there."""

from __future__ import annotations

import re
from typing import Any

import jax


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
