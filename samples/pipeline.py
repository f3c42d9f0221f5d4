"""A pipeline: each device is a layer, and microbatches pass from one to the next.

In every tick all stages work, each on another microbatch, and hand their results to the next stage by `ppermute`. The
line needs S - 1 ticks to fill, during which late stages compute on nothing: the bubble. The whole schedule is one scan
with one collective-permute in its body, which therefore runs microbatches + S - 1 times; backward it runs the other
way, as often.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

STAGES, MICROBATCHES, EXAMPLES, WIDTH = 4, 6, 5, 8
mesh = jax.make_mesh((STAGES,), ("stage",), axis_types=(AxisType.Auto,))
to_next_stage = [(stage, stage + 1) for stage in range(STAGES - 1)]


@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P(), P()), out_specs=P())
def loss(params, microbatches, targets):
    """The squared error of what leaves the last stage."""
    (W,), (b,) = params  # the leading dimension is the stages: each device sees its own
    stage = lax.axis_index("stage")

    def layer(x):
        return jax.nn.relu(x @ W + b)

    def tick(arrived, time):
        entering = microbatches[jnp.minimum(time, MICROBATCHES - 1)]
        y = layer(jnp.where(stage == 0, entering, arrived))
        return lax.ppermute(y, "stage", to_next_stage), y

    nothing = jnp.zeros_like(layer(microbatches[0]))  # shaped, and varying, as what a stage sends
    _, ys = lax.scan(tick, nothing, jnp.arange(MICROBATCHES + STAGES - 1))
    errors = jnp.sum((ys[STAGES - 1 :] - targets) ** 2, axis=-1)
    return lax.psum(jnp.where(stage == STAGES - 1, jnp.mean(errors), 0.0), "stage")


grad = jax.jit(jax.grad(loss))


def loss_inputs():
    """Stacked parameters, one layer a device; microbatches and targets on all of them."""
    random = np.random.default_rng(0)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)

    params = (normal(STAGES, WIDTH, WIDTH) / np.float32(np.sqrt(WIDTH)), normal(STAGES, WIDTH))
    examples = normal(MICROBATCHES, EXAMPLES, WIDTH), normal(MICROBATCHES, EXAMPLES, WIDTH)
    return (
        jax.device_put(params, NamedSharding(mesh, P("stage"))),
        *jax.device_put(examples, NamedSharding(mesh, P())),
    )


grad_inputs = loss_inputs

if __name__ == "__main__":
    print(loss(*loss_inputs()))
