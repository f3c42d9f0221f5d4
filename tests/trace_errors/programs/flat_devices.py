"""A mesh of two axes made of the list of devices."""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(jax.devices(), ("data", "model"))


class Config:
    d_model = 64
    batch = 16


def forward(w, x):
    return jax.nn.relu(x @ w)


w = jax.device_put(jnp.ones((Config.d_model, Config.d_model)), NamedSharding(mesh, P(None, "model")))
x = jax.device_put(jnp.ones((Config.batch, Config.d_model)), NamedSharding(mesh, P("data")))
print(jax.jit(forward)(w, x).sum())
