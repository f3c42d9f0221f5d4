"""Remote effects of an equation of a TPU kernel: Mosaic's copies and signals (JAX 0.7 to 0.12)."""

from __future__ import annotations

from typing import Any

import jax

from . import avals

DEVICES = {"dma_start": ("tree", 4), "semaphore_signal": ("args_tree", 3)}
"""The parameter of each primitive with its operands' tree, and which is the device, None for its own."""

WITH_INDICES = 9
"""Operands of a copy before JAX 0.8: indices follow each of the four that are references."""


def reached(equation: Any) -> str | None:
    """The type of what is copied to another device, `""` for a signal or a size that is not static, else None."""
    tree, place = DEVICES.get(equation.primitive.name, ("", 0))
    if not isinstance(structure := equation.params.get(tree), jax.tree_util.PyTreeDef):
        return None
    if structure.num_leaves != len(equation.invars):
        return None
    operands = jax.tree_util.tree_unflatten(structure, [each.aval for each in equation.invars])
    indices: Any = ()
    if equation.primitive.name == "dma_start" and len(operands) == WITH_INDICES:
        indices, operands = operands[1], operands[::2]
    if len(operands) <= place or operands[place] is None:
        return None
    if equation.primitive.name != "dma_start" or indices:
        return ""
    source = operands[0]
    try:  # a slice of a reference has the shape of what it selects
        return avals.type_text(jax.core.ShapedArray(tuple(map(int, source.shape)), source.dtype))
    except (AttributeError, TypeError, ValueError):
        return ""
