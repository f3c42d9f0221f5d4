"""Sources of the arguments: the command line, the script, or none where none are needed. The syntax of `--arg`:

f32[8,16]             a type in JAX's short spelling; also bf16, i32, bool, key<fry>, or NumPy's names
f32[8,16]@x,y         sharded: one PartitionSpec entry per dimension, `-` for none, `x+y` for two axes on one
{"w": "f32[8,4]@x"}   a pytree, in JSON, with types as strings
3  0.5  true  null    a plain value, in JSON; so is a string that is not a type
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ...protocol.request import Request, UsageError
from ..subject import meshes_in_context, meshes_in_function, meshes_in_namespace
from . import callables
from .callables import Arguments
from .resolve import Resolved, attribute
from .wrappers import signature_of

MARK = "shardscope_inputs"
"""The attribute that `@shardscope.inputs(…)` sets."""


def find_arguments(request: Request, found: Resolved) -> Arguments:
    """The arguments by the first rule that applies, as `shardscope run --help` lists them.

    Raises:
        UsageError: none applies, or what was named is not there. What the script's own functions raise passes through.
    """
    if request.args:
        return tuple(read_argument(text, _mesh_finder(found)) for text in request.args), {}
    if request.inputs is not None:
        return _evaluate(attribute(request.inputs, found, "--inputs"), found)
    inner, _, _ = callables.unwrap(found.function)
    if (marked := getattr(found.function, MARK, getattr(inner, MARK, None))) is not None:
        return _evaluate(marked, found)
    signature = signature_of(found.function)
    takes_any = signature is None or bool(signature.parameters)
    for name in (f"{found.name}_inputs", *(("inputs",) if takes_any else ())):
        for owner in (found.owner, found.module):
            if (value := getattr(owner, name, None)) is not None:
                return _evaluate(value, found)
    if signature is not None and _binds(signature, (), {}):
        return (), {}
    shown = f"{found.name}{signature}" if signature is not None else found.name
    raise UsageError(
        f"{shown} needs arguments",
        f"define {found.name}_inputs in the script: a tuple of arrays or jax.ShapeDtypeStructs, or a function that"
        f" returns one; or name them with --inputs NAME, or give one --arg 'f32[8,16]' per argument",
    )


def _evaluate(value: Any, found: Resolved) -> Arguments:
    """Call what is a function; read the result as arguments, or as `(args, kwargs)` where that fits the function."""
    if callable(value) and not hasattr(value, "shape"):
        value = value()
    if not isinstance(value, tuple):
        return (value,), {}
    if len(value) == 2 and isinstance(value[0], (tuple, list)) and isinstance(value[1], dict):
        args, kwargs = tuple(value[0]), value[1]
        signature = signature_of(found.function)
        if all(isinstance(name, str) for name in kwargs) and (signature is None or _binds(signature, args, kwargs)):
            return args, kwargs
    return value, {}


def _binds(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _mesh_finder(found: Resolved) -> Callable[[frozenset[str]], Any]:
    """Finds the mesh for the axes that an `--arg` names: the one in force, the function's own, then the script's."""

    def find(axes: frozenset[str]) -> Any:
        namespace = vars(found.module)
        known = [*meshes_in_context(), *meshes_in_function(found.function), *meshes_in_namespace(namespace)]
        for mesh in known:
            if axes <= set(mesh.axis_names):
                return mesh
        listed = " and ".join(sorted({f"({', '.join(mesh.axis_names)})" for mesh in known}))
        named = f"--arg names the {'axes' if len(axes) > 1 else 'axis'} {', '.join(sorted(axes))}"
        raise UsageError(
            f"{named}, but {f'the axes of the mesh are {listed}' if listed else 'no mesh was found'}",
            "a mesh is found where jax.set_mesh set it, in the shard_map, or among the script's globals",
        )

    return find


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
