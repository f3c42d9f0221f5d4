"""Data parallelism, and tensor parallelism by the metadata of Linen's parameters: one gradient."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
columns = nn.with_partitioning(nn.initializers.lecun_normal(), (None, "model"))
rows = nn.with_partitioning(nn.initializers.lecun_normal(), ("model", None))


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for name in ("first", "second"):
            up = nn.Dense(256, use_bias=False, kernel_init=columns, name=f"{name}_up")(nn.LayerNorm()(x))
            x = x + nn.Dense(64, use_bias=False, kernel_init=rows, name=f"{name}_down")(nn.gelu(up))
        return x


model = Model()


@jax.jit
def gradient(params, x, y):
    return jax.grad(lambda params: jnp.mean((model.apply(params, x) - y) ** 2))(params)


def gradient_inputs():
    batch = jax.device_put(jnp.ones((32, 64)), NamedSharding(mesh, P("data")))
    boxed = jax.eval_shape(model.init, jax.random.key(0), batch)
    shardings = nn.get_sharding(boxed, mesh)
    params = jax.jit(lambda key: nn.unbox(model.init(key, batch)), out_shardings=nn.unbox(shardings))(jax.random.key(0))
    return params, batch, batch
