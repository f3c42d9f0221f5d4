"""Steps that bring the jit of a library, or come wrapped: each with the arguments that a script calls it with."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
batch = jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P("data")))


class Network(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(16, 32, rngs=rngs)
        self.down = nnx.Linear(32, 16, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.relu(self.up(x)))


def sgd(model, x):
    loss, gradients = nnx.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    nnx.update(model, jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model, nnx.Param), gradients))
    return loss


nnx_step = nnx.jit(sgd)
nnx_step_inputs = sgd_inputs = (Network(nnx.Rngs(0)), batch)


@nnx.jit
def gradients(model, x):
    return nnx.grad(lambda m: (m(x) ** 2).mean())(model)


gradients_inputs = nnx_step_inputs

network = eqx.nn.MLP(16, 16, 32, 2, key=jax.random.key(0))


def descend(model, x):
    loss, gradients = eqx.filter_value_and_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients)), loss


eqx_step = eqx.filter_jit(descend, donate="all-except-first")
eqx_step_inputs = descend_inputs = (network, batch)


@eqx.filter_pmap(in_axes=(None, 0), axis_name="devices")
def mapped(model, x):
    gradients = eqx.filter_grad(lambda m: (jax.vmap(m)(x) ** 2).mean())(model)
    return jax.lax.pmean(gradients, "devices")


mapped_inputs = (network, jnp.ones((8, 2, 16)))


def timed(function):
    @functools.wraps(function)
    def run(*args):
        return function(*args)

    return run


@timed
@functools.partial(jax.jit, donate_argnums=0, out_shardings=NamedSharding(mesh, P(None, "model")))
def behind(x):
    return jnp.tanh(x)


behind_inputs = (batch,)


class Trainer:
    @eqx.filter_jit
    def loss(self, x):
        return (x**2).sum()


trainer = Trainer()
loss_inputs = (batch,)


class Late:
    """A wrapper that makes its jit in each call, as Haliax' `named_jit` does, and that has no hash."""

    __hash__ = None

    def __init__(self, function, **options):
        self.__wrapped__ = function
        self.options = options

    def _jitted(self):
        return jax.jit(lambda *args: self.__wrapped__(*args), **self.options)

    def __call__(self, *args):
        return self._jitted()(*args)

    def lower(self, *args):
        return self._jitted().lower(*args)


late = Late(lambda x: (x**2).sum(), donate_argnums=0)
late_inputs = (batch,)

ORACLES = {
    "nnx_step": lambda: nnx_step.lower(*nnx_step_inputs).lowered,
    "sgd": lambda: nnx_step.lower(*nnx_step_inputs).lowered,
    "eqx_step": lambda: eqx_step.lower(*eqx_step_inputs).lowered,
    "descend": lambda: eqx.filter_jit(descend).lower(*eqx_step_inputs).lowered,
    "mapped": lambda: mapped.lower(*mapped_inputs).lowered,
    "behind": lambda: behind.__wrapped__.lower(*behind_inputs),
    "late": lambda: late.lower(batch),
    "trainer.loss": lambda: trainer.loss.func.lower(trainer, batch).lowered,
}
"""What each of them lowers to without us."""
