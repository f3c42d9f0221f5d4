"""What a jitted function was told: static arguments and asked shardings. JAX keeps this in a private attribute."""

from __future__ import annotations

from typing import Any

import jax

ATTRIBUTE = "_jit_info"
FIELDS = ("static_argnums", "static_argnames", "in_shardings_treedef", "in_shardings_leaves")


def probe() -> str | None:
    """What cannot be known with this JAX, if its attribute has moved."""
    info = getattr(jax.jit(lambda: None), ATTRIBUTE, None)
    missing = [name for name in FIELDS if not hasattr(info, name)]
    if not missing:
        return None
    moved = f"{ATTRIBUTE}.{missing[0]}"
    return f"JAX {jax.__version__} keeps no {moved}: jit's static arguments and shardings are not known"


def is_jitted(function: Any) -> bool:
    """Whether it is what `jax.jit` returns."""
    return isinstance(function, type(jax.jit(lambda: None)))


def static_arguments(jitted: Any) -> tuple[list[int], list[str]]:
    """Positions and names of the static arguments; none where JAX does not tell."""
    info = getattr(jitted, ATTRIBUTE, None)
    return list(getattr(info, "static_argnums", None) or ()), list(getattr(info, "static_argnames", None) or ())


def asked_shardings(jitted: Any, side: str) -> Any:
    """`in_shardings` or `out_shardings` as given, a tree prefix with None where nothing was said; None for nothing."""
    info = getattr(jitted, ATTRIBUTE, None)
    tree = getattr(info, f"{side}_shardings_treedef", None)
    leaves = getattr(info, f"{side}_shardings_leaves", None)
    if tree is None or leaves is None:
        return None
    return jax.tree.unflatten(tree, leaves)
