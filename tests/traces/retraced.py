"""Functions that JAX compiles more than once, each for one reason, and programs of which little is known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

x = np.ones((8, 4), np.float32)


def made(rate):
    def by_closure(x):
        return x * rate

    return jax.jit(by_closure)


def scale(x, k, *, bias=0.0):
    return x * k + bias


def plain(x):
    return x + 1


class Mute:
    """A static value without a text."""

    def __repr__(self):
        raise RuntimeError


@jax.tree_util.register_pytree_node_class
class Node:
    """A node that holds one."""

    def tree_flatten(self):
        return (x,), Mute()

    @classmethod
    def tree_unflatten(cls, mute, leaves):
        return cls()


class Model:
    def __call__(self, x):
        return x @ x.T


@jax.jit
def setting(x):
    return x @ x.T


@jax.jit
def cleared(x):
    return x - 1


@jax.jit
def placed(x):
    return x - 2


@jax.jit
def meshed(x):
    return x - 3


@jax.jit
def structured(pair):
    return pair[0] - pair[1]


for rate in (0.1, 0.2):
    made(rate)(x)
for bias in (1.0, 2.0):
    jax.jit(functools.partial(scale, bias=bias))(x, 2.0)
for power in (2, 3):
    jax.jit(lambda x, power: x**power, static_argnames="power").lower(x, power=power).compile()(x)
for _ in range(2):
    jax.jit(lambda x: plain(x))(x)
setting(x)
with jax.default_matmul_precision("highest"):
    setting(x)
for device in (0, 1):
    placed(jax.device_put(x, jax.devices()[device]))
for shape in ((2, 1), (1, 2)):
    spread = NamedSharding(Mesh(np.array(jax.devices()[:2]).reshape(shape), ("a", "b")), P("a", "b"))
    meshed(jax.device_put(x, spread))
structured((x, x))
structured([x, x])
jax.jit(lambda node, mute: 1, static_argnums=1).trace(Node(), Mute()).lower().compile()
jax.jit(lambda node, mute: 2, static_argnums=1)(Node(), Mute())
jax.jit(jnp.sum)(x)
jax.jit(jax.nn.relu)(x)
jnp.linalg.norm(jax.nn.softmax(x))
model = jax.jit(Model())
model(x), model(x)
mesh = Mesh(np.array(jax.devices()), ("d",))
summed = jax.jit(lambda x: x.sum(), in_shardings=NamedSharding(mesh, P("d")))
loaded = deserialize_and_load(*serialize(summed.lower(x).compile()))
for _ in range(3):
    loaded(jax.device_put(x, NamedSharding(mesh, P("d"))))
jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=P("d"), out_specs=P())(
    jax.device_put(x, NamedSharding(mesh, P("d")))
)
jax.grad(jax.jit(lambda x: (x**2).sum()))(x)
cleared(x)
jax.clear_caches()
cleared(x)
raise KeyboardInterrupt
