"""A trainer whose programs shard its state differently: read whole from a checkpoint, and an optimizer's state that is
made on one device. With the argument `meant`, all of it is sharded."""

import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MEANT = "meant" in sys.argv


class State(NamedTuple):
    params: Any
    moments: Any


class Trainer:
    def __init__(self) -> None:
        self.mesh = Mesh(np.array(jax.devices()), ("fsdp",))
        self.rows = NamedSharding(self.mesh, P("fsdp"))

    def restored(self, params):
        sharding = self.rows if MEANT else NamedSharding(self.mesh, P())
        return jax.device_put(jax.tree.map(np.asarray, params), sharding)

    def fit(self) -> None:
        @jax.jit
        def step(state, x):
            def loss(p):
                return jnp.mean((jnp.tanh(x @ p["in"]) @ p["out"] - x) ** 2)

            gradients = jax.grad(loss)(state.params)
            mu = jax.tree.map(lambda m, g: 0.9 * m + g, state.moments["mu"], gradients)
            return State(jax.tree.map(lambda p, m: p - 0.1 * m, state.params, mu), {"mu": mu})

        def init():
            return {"in": jnp.ones((256, 128)), "out": jnp.ones((128, 256))}

        def zeros(params):
            return {"mu": jax.tree.map(jnp.zeros_like, params)}

        made = jax.jit(init, out_shardings=self.rows)()
        moments = jax.jit(zeros, out_shardings=self.rows if MEANT else None)(made)
        state = State(self.restored(made), jax.device_put(moments, self.rows))
        for _ in range(2):
            step(state, jax.device_put(np.ones((64, 256), np.float32), self.rows))


if __name__ == "__main__":
    Trainer().fit()
