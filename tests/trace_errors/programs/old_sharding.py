import jax
import jax.numpy as jnp
from jax.sharding import PositionalSharding  # noqa: F401

print(jax.tree_map(jnp.sum, jnp.ones(8)))
