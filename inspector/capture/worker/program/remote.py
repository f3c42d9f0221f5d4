"""Remote effects of a kernel's equation: Mosaic's copies and signals, references on other GPUs (JAX 0.7 to 0.12)."""

from __future__ import annotations

from typing import Any

import jax

from . import avals

DEVICES = {"dma_start": ("tree", 4), "semaphore_signal": ("args_tree", 3)}
"""The parameter of each primitive with its operands' tree, and which is the device, None for its own."""

WRITES = ("swap", "addupdate", "copy_smem_to_gmem")
"""Primitives by which a kernel of a GPU writes to a reference."""

PEER = "PeerMemRef"
"""The class of `jax._src.pallas.mosaic_gpu.core` that a reference on another GPU has among its transforms."""

WITH_INDICES = 9
"""Operands of a copy before JAX 0.8: indices follow each of the four that are references."""


def reached(equation: Any) -> str | None:
    """The type of what is copied to another device, `""` for a signal or a size that is not static, else None."""
    operands = _operands(equation, [each.aval for each in equation.invars])
    if _device(equation, operands) is None:
        return None
    if equation.primitive.name != "dma_start":
        return ""
    source = operands[0]
    try:  # a slice of a reference has the shape of what it selects
        return avals.type_text(jax.core.ShapedArray(tuple(map(int, source.shape)), source.dtype))
    except (AttributeError, TypeError, ValueError):
        return ""


def device(equation: Any) -> list[tuple[str, Any]]:
    """The numbers that name the device: coordinates, with their axes where these are given, or one of all devices."""
    found = _device(equation, _operands(equation, equation.invars))
    if found is None:
        found = _of_peer(equation)
    if isinstance(found, dict):
        return [(" ".join(axis) if isinstance(axis, tuple) else str(axis), atom) for axis, atom in found.items()]
    return [("", atom) for atom in jax.tree_util.tree_leaves(found)]


def _device(equation: Any, operands: Any) -> Any:
    _, place = DEVICES.get(equation.primitive.name, ("", 0))
    return operands[place] if place < len(operands) else None


def _operands(equation: Any, leaves: list[Any]) -> Any:
    """The operands by their tree, None for the source of a copy with indices beside it; none of other equations."""
    tree, _ = DEVICES.get(equation.primitive.name, ("", 0))
    structure = equation.params.get(tree)
    if not isinstance(structure, jax.tree_util.PyTreeDef) or structure.num_leaves != len(leaves):
        return ()
    operands = jax.tree_util.tree_unflatten(structure, leaves)
    if equation.primitive.name == "dma_start" and len(operands) == WITH_INDICES:
        source, indices, *others = operands
        return [None if indices else source, *others[::2]]
    return operands


def _of_peer(equation: Any) -> Any:
    """The device that a reference of a GPU kernel is on; None where it is its own, or not known."""
    if equation.primitive.name not in WRITES:
        return None
    trees = {name: tree for name, tree in equation.params.items() if isinstance(tree, jax.tree_util.PyTreeDef)}
    if set(trees) == {"tree"}:  # what indexes the reference comes last
        starts = {"tree": len(equation.invars) - trees["tree"].num_leaves}
    elif set(trees) == {"src_transforms_treedef", "dst_transforms_treedef"}:  # behind both references
        starts = {"src_transforms_treedef": 2, "dst_transforms_treedef": 2 + trees["src_transforms_treedef"].num_leaves}
    else:
        return None
    for name, start in starts.items():
        leaves = equation.invars[start : start + trees[name].num_leaves]
        if start < 0 or len(leaves) != trees[name].num_leaves:
            continue
        found = jax.tree_util.tree_unflatten(trees[name], leaves)
        for each in jax.tree_util.tree_leaves(found, is_leaf=_is_peer):
            if _is_peer(each):
                return each.device_id
    return None


def _is_peer(transform: Any) -> bool:
    return type(transform).__name__ == PEER
