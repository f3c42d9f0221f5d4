"""Metrics of an evaluation in a shard_map, of which one is averaged over the devices and one is not."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("batch",))


def make_eval(apply_fn):
    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs={"loss": P(), "acc": P()})
    def evaluate(params, images, labels):
        logits = apply_fn(params, images)
        loss = -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))
        acc = jnp.mean(jnp.argmax(logits, -1) == labels)
        return {"loss": jax.lax.pmean(loss, "batch"), "acc": acc}

    return evaluate


def net(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]


params = {"w": np.ones((12, 24), np.float32), "v": np.eye(24, 10, dtype=np.float32)}
rng = np.random.default_rng(0)
images = jax.device_put(rng.normal(size=(64, 12)).astype(np.float32), NamedSharding(mesh, P("batch")))
labels = jax.device_put(rng.integers(0, 10, 64), NamedSharding(mesh, P("batch")))
print(make_eval(net)(params, images, labels))
