"""Equations of a jaxpr that do what a body of theirs does, once, with their own operands."""

from __future__ import annotations

CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat", "remat2", "checkpoint"}
    | {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"}
)

CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Parameters that hold the body of a call."""

CONSTRAINTS = ("sharding_constraint", "reshard", "mesh_cast")
"""Primitives that give a value another sharding, or ask for one."""

_KERNELS = ("pallas_call", "core_map", "mosaic", "triton", "tpu_custom_call")


def is_kernel(primitive: str) -> bool:
    """Whether an equation of that primitive is a kernel, whose body has a compiler of its own."""
    return any(name in primitive for name in _KERNELS)
