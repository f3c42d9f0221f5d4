# thread: jax-ml/jax#21562
# asks: "Involuntary full rematerialization" of a sum that is constrained to other axes
# truth: no short way leads from ('y', None, 'x') to (None, ('x', 'y'), None): shard the operands otherwise
# finds: SS23
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.asarray(jax.devices()).reshape(4, 2), ("x", "y"))
before, after = NamedSharding(mesh, P("y", None, "x")), NamedSharding(mesh, P(None, ("x", "y"), None))


def total(a, b, c):
    d = jax.lax.with_sharding_constraint(a + b, after)
    return c + d


f = jax.jit(total, in_shardings=(before, before, after), out_shardings=after)
a, b, c = (jnp.arange(16.0**3).reshape(16, 16, 16) for _ in range(3))
print(f(a, b, c).sum())
