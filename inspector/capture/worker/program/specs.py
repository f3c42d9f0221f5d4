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
    parts = [_entry(entry) for entry in tuple(sharding)]
    for state in ("unreduced", "reduced"):
        if axes := getattr(sharding, state, None):
            parts.append(f"{state}={{{', '.join(repr(axis) for axis in sorted(map(str, axes)))}}}")
    kind = getattr(sharding, "unreduced_kind", None)
    if kind not in (None, "sum") and getattr(sharding, "unreduced", None):
        parts.append(f"unreduced_kind={kind}")
    return f"P({', '.join(parts)})"


def _entry(entry: Any) -> str:
    if entry is PartitionSpec.UNCONSTRAINED:
        return "P.UNCONSTRAINED"
    if isinstance(entry, tuple):
        return f"({', '.join(map(repr, entry))}{',' if len(entry) == 1 else ''})"
    return repr(entry)
