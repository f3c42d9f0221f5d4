"""The syntax of `--arg`.

f32[8,16]             a type in JAX's short spelling; also bf16, i32, bool, key<fry>, or NumPy's names
f32[8,16]@x,y         sharded: one PartitionSpec entry per dimension, `-` for none, `x+y` for two axes on one
{"w": "f32[8,4]@x"}   a pytree, in JSON, with types as strings
3  0.5  true  null    a plain value, in JSON; so is a string that is not a type
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ...protocol.request import UsageError

_TYPE = re.compile(r"(?P<dtype>[a-z]\w*(?:<\w+>)?)\[(?P<dims>[\d\s,]*)\](?:@(?P<spec>.*))?")

_SHORT = {"f": "float", "bf": "bfloat", "i": "int", "s": "int", "u": "uint", "c": "complex"}

FindMesh = Callable[[frozenset[str]], Any]
"""Return a mesh that has all of these axis names, or None."""


def read_argument(text: str, find_mesh: FindMesh) -> Any:
    """The argument that one `--arg` names: ShapeDtypeStructs in a pytree, and plain values.

    Raises:
        UsageError: the text says nothing of the kind, or names an axis of no mesh.
    """
    text = text.strip()
    if _TYPE.fullmatch(text):
        return _abstract(text, find_mesh)
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(
            f"--arg {text!r} is neither a type nor JSON", "write a type as f32[8,16], sharded as f32[8,16]@x,-"
        ) from None
    return _build(tree, find_mesh)


def _build(tree: Any, find_mesh: FindMesh) -> Any:
    if isinstance(tree, dict):
        return {name: _build(value, find_mesh) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_build(value, find_mesh) for value in tree]
    return _abstract(tree, find_mesh) if isinstance(tree, str) and _TYPE.fullmatch(tree) else tree


def _abstract(text: str, find_mesh: FindMesh) -> Any:
    match = _TYPE.fullmatch(text)
    assert match is not None
    shape = tuple(int(size) for size in match["dims"].split(",") if size.strip())
    dtype = _dtype(match["dtype"])
    if match["spec"] is None:
        return jax.ShapeDtypeStruct(shape, dtype)
    entries = [_entry(entry) for entry in match["spec"].split(",")] if match["spec"].strip() else []
    if len(entries) > len(shape):
        raise UsageError(f"--arg {text}: {len(entries)} entries after @ for {len(shape)} dimensions")
    axes = frozenset(axis for entry in entries for axis in _axes(entry))
    mesh = find_mesh(axes)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*entries)))


def _entry(text: str) -> str | tuple[str, ...] | None:
    axes = tuple(axis.strip() for axis in text.split("+"))
    if axes in {("-",), ("",)}:
        return None
    return axes if len(axes) > 1 else axes[0]


def _axes(entry: str | tuple[str, ...] | None) -> Iterable[str]:
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def _dtype(name: str) -> Any:
    if name in KEY_IMPLEMENTATIONS:
        return jax.random.key(0, impl=KEY_IMPLEMENTATIONS[name]).dtype
    letters, rest = re.match(r"([a-z]*)(.*)", name).groups()  # type: ignore[union-attr]
    long = "bool" if name == "pred" else _SHORT[letters] + rest if letters in _SHORT and rest else name
    try:
        dtype = getattr(jnp, long).dtype if hasattr(getattr(jnp, long, None), "dtype") else np.dtype(long)
    except TypeError:
        raise UsageError(f"{name!r} is not a dtype", "for instance f32, bf16, i32, u8, bool, c64, f8_e4m3fn") from None
    return dtype


MAX_INTEGER = 8
"""Integers are below this: they are as likely as not indices into something."""

KEY_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""JAX's type names of random keys, by the names of their implementations."""


def is_abstract(leaf: Any) -> bool:
    """Return whether an argument has a type but no value."""
    return isinstance(leaf, jax.ShapeDtypeStruct)


def concrete(leaf: Any, seed: int, index: int, *, gentle: bool = False) -> Any:
    """The leaf itself if it has a value, else a value for it; `index` tells the leaves of one call apart.

    `gentle` numbers are not negative, as second moments, and small where they are weights of a sum.
    """
    if not is_abstract(leaf):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return _keys(leaf, seed, index)
    generator = np.random.default_rng((seed, index))
    if jnp.issubdtype(leaf.dtype, jnp.bool_):
        return generator.integers(0, 2, leaf.shape).astype(bool)
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        largest = int(jnp.iinfo(leaf.dtype).max)
        return generator.integers(0, min(MAX_INTEGER, largest + 1), leaf.shape).astype(leaf.dtype)
    values = generator.standard_normal(leaf.shape, dtype=np.float32)
    if gentle:
        values = np.abs(values) / np.sqrt(leaf.shape[-2] if len(leaf.shape) > 1 else 1)
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        values = values + 1j * generator.standard_normal(leaf.shape, dtype=np.float32)
    elif not jnp.issubdtype(leaf.dtype, jnp.floating):
        return np.zeros(leaf.shape, leaf.dtype)  # float0 and what else has no values
    else:
        limit = min(float(jnp.finfo(dtype).max) for dtype in (leaf.dtype, jnp.float32))
        values = np.clip(values, -limit, limit)
    return values.astype(leaf.dtype)


def _keys(leaf: Any, seed: int, index: int) -> Any:
    root = jax.random.fold_in(jax.random.key(seed, impl=KEY_IMPLEMENTATIONS.get(str(leaf.dtype))), index)
    return jax.random.split(root, leaf.shape) if leaf.shape else root
