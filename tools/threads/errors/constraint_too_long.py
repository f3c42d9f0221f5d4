# thread: patrick-kidger/equinox#738
# asks: A constraint of another rank
# truth: one entry for each dimension
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def constrain(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


@jax.jit
def step(w, x, y):
    def loss_fn(w):
        h = constrain(x @ w, "data", "model")
        per_example = constrain(jnp.mean((h - y) ** 2, axis=-1), "data", None)
        return per_example.mean()

    return jax.value_and_grad(loss_fn)(w)


w = jnp.ones((16, 8))
x = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data")))
y = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
print(step(w, x, y)[0])
