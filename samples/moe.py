"""A mixture of experts: tokens travel to their expert and back by all-to-all.

Four devices, each with a quarter of the tokens and one expert. A router picks an expert for each token; a device has
room for `ROOM` tokens per expert; what comes later in the queue is dropped and passes unchanged. Backward, gradients
take the same two ways in the other direction. An expert's gradient stays at home; only the router's needs a psum.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

EXPERTS, TOKENS, WIDTH, HIDDEN, ROOM = 4, 32, 8, 16, 3
mesh = jax.make_mesh((EXPERTS,), ("expert",), axis_types=(AxisType.Auto,))


def route(x, router):
    """For each token its place, as a one-hot matrix over (expert, slot), and the weight of its answer."""
    weights = jax.nn.softmax(x @ router)
    choice = jax.nn.one_hot(jnp.argmax(weights, axis=-1), EXPERTS, dtype=int)
    queued_before = jnp.sum((jnp.cumsum(choice, axis=0) - 1) * choice, axis=-1)
    place = choice[:, :, None] * jax.nn.one_hot(queued_before, ROOM)[:, None, :]  # zeros for those beyond the room
    return place, jnp.max(weights, axis=-1)


def experts(params, x):
    """`x` plus what the experts answer."""
    router, (w_in,), (w_out,) = params
    place, weight = route(x, router)
    outgoing = jnp.einsum("td,tes->esd", x, place)
    arrived = lax.all_to_all(outgoing, "expert", 0, 0)  # the first dimension was the expert, now it is the sender
    answers = jax.nn.relu(arrived @ w_in) @ w_out
    returned = lax.all_to_all(answers, "expert", 0, 0)
    return x + weight[:, None] * jnp.einsum("esd,tes->td", returned, place)


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=((P(), P("expert"), P("expert")), P("expert")), out_specs=P())
def loss(params, x):
    """The mean square of the answers."""
    return lax.pmean(jnp.mean(experts(params, x) ** 2), "expert")


grad = jax.jit(jax.grad(loss, argnums=(0, 1)))


def loss_inputs():
    """The router on all devices; experts and tokens sharded over `expert`."""
    random = np.random.default_rng(0)

    def normal(spec, *shape):
        values = (random.normal(size=shape) / np.sqrt(WIDTH)).astype(np.float32)
        return jax.device_put(values, NamedSharding(mesh, spec))

    own = P("expert")
    params = normal(P(), WIDTH, EXPERTS), normal(own, EXPERTS, WIDTH, HIDDEN), normal(own, EXPERTS, HIDDEN, WIDTH)
    return params, normal(own, TOKENS, WIDTH)


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
