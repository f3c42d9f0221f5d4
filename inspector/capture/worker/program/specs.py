"""PartitionSpecs as text, one spelling for all versions of JAX."""

from __future__ import annotations

from typing import Any

from jax.sharding import NamedSharding, PartitionSpec


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
