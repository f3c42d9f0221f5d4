"""Functions that need a mesh in the context, called without one: the hint names the ways to give one."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.worker.failures import hint_of

WITHOUT: dict[str, Callable[[jax.Array], object]] = {
    "constraint": lambda x: jax.lax.with_sharding_constraint(x, P("x")),
    "reshard": lambda x: jax.sharding.reshard(x, P("x")),
    "shard_map": lambda x: jax.shard_map(jnp.sin, in_specs=P("x"), out_specs=P("x"))(x),
    "out_sharding": lambda x: jnp.einsum("ij,jk->ik", x, x, out_sharding=P("x")),
    "lookup": lambda x: x.at[jnp.array([0])].get(out_sharding=P("x")),
}
"""What JAX says of each differs."""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 says it otherwise, or nothing")
@pytest.mark.parametrize("name", WITHOUT)
def test_what_jax_says_without_a_mesh_is_understood(name: str) -> None:
    with pytest.raises((ValueError, RuntimeError)) as raised:
        jax.jit(WITHOUT[name])(jnp.ones((4, 4)))
    assert "--mesh" in (hint_of(str(raised.value), is_own=True) or "")


def test_other_errors_are_not_taken_for_it() -> None:
    with pytest.raises(TypeError) as raised:
        jnp.ones((4, 4)) @ jnp.ones((3, 3))
    assert hint_of(str(raised.value), is_own=True) is None
