"""Types of traced values, as text and by the mesh axes over which they vary, and meshes, by their keys.

These attributes differ between JAXes. A PartitionSpec does not say which of the meshes with its axes is meant.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from ...protocol.events import ABSTRACT, key_of_axes
from ...protocol.trace import Value


def probe() -> str | None:
    """Return what cannot be known with this version of JAX because attributes have moved."""
    aval = jax.typeof(0.0)
    if not (hasattr(aval, "manual_axis_type") or hasattr(aval, "vma")):
        return f"JAX {jax.__version__} has neither aval.manual_axis_type nor aval.vma: variance is not known"
    return None


def type_text(aval: Any) -> str:
    """The type in JAX's short spelling: `f32[2,4]{V:(x,y)}`, `f32[8@x,16]`; `f32[2,4]{x,y}` before JAX 0.8.

    Axes in braces are sorted: older versions print them in the order of a set, different in each run.
    """
    try:
        text = str(aval.str_short(short_dtypes=True))
    except (AttributeError, TypeError):
        text = str(aval)
    return re.sub(r"\{([\w,]+)\}$", lambda match: "{" + ",".join(sorted(match[1].split(","))) + "}", text)


def variance(aval: Any) -> dict[str, list[str]]:
    """The mesh axes over which a value varies, is unreduced, or is reduced; empty for values that have no such type."""
    manual = getattr(aval, "manual_axis_type", None)
    if manual is not None:
        return {name: _sorted(getattr(manual, name, ())) for name in ("varying", "unreduced", "reduced")}
    if hasattr(aval, "vma"):
        return {"varying": _sorted(aval.vma), "unreduced": [], "reduced": []}
    return {}


def varying(value: Any) -> tuple[str, ...]:
    """The mesh axes over which a traced value varies."""
    return tuple(variance(jax.typeof(value)).get("varying", ()))


def is_unreduced(value: Any) -> bool:
    """Return whether each device holds only a summand of a traced value."""
    return bool(variance(jax.typeof(value)).get("unreduced"))


def is_sharded(value: Any) -> bool:
    """Return whether a traced value's type is sharded over axes that are not manual here."""
    spec = getattr(getattr(jax.typeof(value), "sharding", None), "spec", ())
    return any(entry is not None for entry in entries(spec))


def is_ref(aval: Any) -> bool:
    """Return whether a type is that of a Ref, a mutable array (`jax.new_ref`)."""
    return type(aval).__name__ == "AbstractRef"


def _sorted(axes: Any) -> list[str]:
    return sorted(map(str, axes))


Primitive: Any = type(jax.lax.add_p)
"""`jax.extend.core.Primitive`, without the import of all that is beside it."""

_READ_AS_VARYING = Primitive("shardscope_read_as_varying")


def _type(aval: Any) -> Any:
    manual = aval.manual_axis_type
    kind = {"unreduced_kind": None} if hasattr(manual, "unreduced_kind") else {}  # since JAX 0.12
    varying = manual.varying | manual.unreduced
    return aval.update(manual_axis_type=manual.update(varying=varying, unreduced=frozenset(), **kind))


_READ_AS_VARYING.def_abstract_eval(_type)
mlir.register_lowering(_READ_AS_VARYING, lambda _, value: [value])


def summands(value: Any) -> Any:
    """The same bits, of a type that can leave a shard_map; any other value is given back as it is."""
    return _READ_AS_VARYING.bind(value) if is_unreduced(value) else value


def spec_text(sharding: Any) -> str | None:
    """`P('x', None)` for a NamedSharding or a PartitionSpec; None for anything else, which has no spec."""
    if isinstance(sharding, NamedSharding):
        sharding = sharding.spec
    if not isinstance(sharding, PartitionSpec):
        return None
    parts = [_entry(entry) for entry in entries(sharding)]
    for state in ("unreduced", "reduced"):
        if axes := getattr(sharding, state, None):
            parts.append(f"{state}={{{', '.join(repr(axis) for axis in sorted(map(str, axes)))}}}")
    kind = getattr(sharding, "unreduced_kind", None)
    kind = getattr(kind, "name", kind)
    if kind not in (None, "sum") and getattr(sharding, "unreduced", None):
        parts.append(f"unreduced_kind={kind}")
    return f"P({', '.join(parts)})"


def entries(spec: Any) -> tuple[Any, ...]:
    """The entries of a PartitionSpec, one a dimension. JAX refuses to iterate over reduced or unreduced specs."""
    for attribute in ("partitions", "_partitions"):
        if (found := getattr(spec, attribute, None)) is not None:
            return tuple(found)
    return tuple(spec)


def _entry(entry: Any) -> str:
    if entry is PartitionSpec.UNCONSTRAINED:
        return "P.UNCONSTRAINED"
    if isinstance(entry, tuple):
        return f"({', '.join(map(repr, entry))}{',' if len(entry) == 1 else ''})"
    return repr(entry)


def value_of(
    path: str, aval: Any, requested: Any, own: Any = None, *, donated: bool = False, layout: str | None = None
) -> Value:
    """An argument or a result, with the sharding that is requested of it, or else its own.

    The type of one that is requested in the host's memory is `f32<host>[8]`.
    """
    is_on_host = getattr(requested, "memory_kind", None) == "pinned_host"
    if is_on_host and hasattr(aval, "memory_space") and hasattr(jax, "memory"):
        aval = aval.update(memory_space=jax.memory.Space.Host)
    return Value(
        path,
        type_text(aval),
        spec_text(requested) or spec_text(own),
        donated,
        layout=layout,
        mesh=key_of(requested, own, getattr(aval, "sharding", None)),
        weak=bool(getattr(aval, "weak_type", False)),
    )


def key_of(*shardings: Any) -> str | None:
    """Return the key of the mesh of the first of some shardings that has a mesh with axes."""
    for sharding in shardings:
        mesh = getattr(sharding, "mesh", None)
        if getattr(mesh, "axis_names", ()):
            return mesh_key(mesh)
    return None


def mesh_key(mesh: Any) -> str:
    """`a=8,b=1`; `a=8,b=1 (1c291ca3)`, a digest of the devices, where these are not 0, 1, 2, …."""
    axes = key_of_axes((name, mesh.shape[name]) for name in mesh.axis_names)
    if isinstance(mesh, AbstractMesh):
        return f"{axes}{ABSTRACT}"
    ids = np.asarray(mesh.device_ids, np.int64).ravel()
    in_order = bool(np.array_equal(ids, np.arange(ids.size)))
    return axes if in_order else f"{axes} ({zlib.crc32(ids.astype('<i8').tobytes()):08x})"


def partition_devices(computation: Any) -> Sequence[Any]:
    """The devices that a lowered program is for, in the order of its partitions; none where JAX does not say.

    `computation` is a `pxla.MeshComputation`, whose list of devices JAX holds in a private attribute (0.7 to 0.12).
    """
    given = getattr(computation, "compile_args", {})
    found = getattr(computation, "_device_list", None) or given.get("device_list") or given.get("device_assignment")
    return tuple(found or ())


def devices_of(lowered: Any, executable: Any) -> list[Any]:
    """The devices of a compiled program; of `executable` JAX says those of this process alone."""
    found = partition_devices(getattr(lowered, "_lowering", None))
    own = list(executable.local_devices())
    return list(found) if len(found) > len(own) else own
