"""A layer of experts as JAX users write it: nnx.Param for the experts, lax.all_to_all in a shard_map."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("expert",), axis_types=(AxisType.Auto,))


class Experts(nnx.Module):
    def __init__(self, rngs):
        init = nnx.initializers.lecun_normal()
        self.router = nnx.Linear(32, 8, rngs=rngs)
        self.up = nnx.Param(init(rngs.params(), (8, 32, 64)))
        self.down = nnx.Param(init(rngs.params(), (8, 64, 32)))

    def __call__(self, x):
        gates = jax.nn.softmax(self.router(x))
        run = jax.shard_map(dispatch, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))
        return run(x, gates, self.up[...], self.down[...])


def dispatch(x, gates, up, down):
    choice = jax.nn.one_hot(jnp.argmax(gates, -1), 8)
    sent = jnp.einsum("te,td->etd", choice, x)
    mine = lax.all_to_all(sent, "expert", 0, 0, tiled=True)
    done = jax.nn.gelu(mine @ up[0]) @ down[0]
    back = lax.all_to_all(done, "expert", 0, 0, tiled=True)
    return jnp.einsum("etd,te->td", back, choice * gates)


@nnx.jit
def gradient(model, x):
    return nnx.grad(lambda model: jnp.mean(model(x) ** 2))(model)


def gradient_inputs():
    model = Experts(nnx.Rngs(0))
    for each in (model.up, model.down):
        each[...] = jax.device_put(each[...], NamedSharding(mesh, P("expert")))
    return model, jax.device_put(jnp.ones((64, 32)), NamedSharding(mesh, P("expert")))
