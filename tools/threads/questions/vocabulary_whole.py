# thread: jax-ml/jax#26946
# asks: A constraint shards a table of 17 rows over 8 devices, and each has all of it
# truth: 17 is not divisible by 8, so the constraint is dropped: pad the vocabulary
# finds: SS11
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
vocab_size = 17


@jax.jit
def embedding():
    table = jnp.arange(vocab_size * 1024.0).reshape(vocab_size, 1024)
    return jax.lax.with_sharding_constraint(table, NamedSharding(mesh, P("data", None)))


print(embedding().sharding)
