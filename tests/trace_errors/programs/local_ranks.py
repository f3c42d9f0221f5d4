"""A batch of arrays of two ranks, of which each process makes its part."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "seq"), axis_types=(AxisType.Auto,) * 2)
by_tokens = NamedSharding(mesh, P("data", "seq"))
batch = {"tokens": np.arange(128, dtype=np.float32).reshape(8, 16), "weight": np.ones(8, np.float32)}
batch = jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(by_tokens, leaf), batch)
print(jax.jit(lambda batch: jnp.sum(batch["tokens"].mean(1) * batch["weight"]))(batch))
