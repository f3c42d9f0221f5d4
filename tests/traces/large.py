"""A training step on parameters of several GiB, of which the machine need not have so much."""

import json
import re
import resource
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

ROWS, COLUMNS = 1 << 16, 1 << 13


def peak() -> int:
    """The most bytes that were resident; `ru_maxrss` counts those of the process that this one was forked from, too."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return 1024 * (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> None:
    mesh = jax.sharding.Mesh(np.asarray(jax.devices()).reshape(4, 2), ("fsdp", "tp"))
    sharding = NamedSharding(mesh, P("fsdp", "tp"))

    @jax.jit
    def init(key):
        w = jnp.ones((ROWS, COLUMNS), jnp.float32)
        return {"w": jax.lax.with_sharding_constraint(w, sharding), "key": key, "count": jnp.int32(0)}

    def train_step(state, x):
        y = jnp.tanh(x @ state["w"])
        return {**state, "w": state["w"] * 2, "count": state["count"] + 1}, jnp.mean(y)

    state = init(jax.random.key(0))
    moved = jax.device_put(jnp.zeros((ROWS, COLUMNS)), sharding)
    x = jax.device_put(np.ones((16, ROWS), np.float32), NamedSharding(mesh, P("fsdp")))
    small = jax.jit(lambda x: x * 2)(jnp.arange(3))
    types = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), (state, x))
    step = jax.jit(train_step, donate_argnums=0)
    lowered = step.lower(*types).as_text()
    for _ in range(3):
        state, loss = step(state, x)
    words = {
        "lowered": lowered,
        "bytes": state["w"].nbytes + moved.nbytes,
        "peak": peak(),
        "small": small.tolist(),
        "loss": float(loss),
        "key": str(jax.random.key_data(state["key"]).tolist()),
        "sharding": str(tuple(state["w"].sharding.spec)),
    }
    print(json.dumps(words))


main()
