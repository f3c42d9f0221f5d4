"""Orbax: weights restored into other shardings than they were saved with, and a step on them."""

import tempfile

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def restored():
    saved = {"w": jnp.arange(64 * 64.0).reshape(64, 64), "b": jnp.zeros((64,))}
    folder = tempfile.mkdtemp() + "/checkpoint"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder, saved)
        checkpointer.wait_until_finished()
        rows = NamedSharding(mesh, P("fsdp"))
        wanted = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=rows), saved)
        return checkpointer.restore(folder, wanted)


@jax.jit
def step(params, x):
    return jax.grad(lambda params: jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** 2))(params)


def step_inputs():
    return restored(), jax.device_put(jnp.ones((16, 64)), NamedSharding(mesh, P("fsdp")))
