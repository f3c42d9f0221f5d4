"""A script as people write them: a step that exists only while `main` runs, under a mesh, behind argparse."""

import argparse
import functools
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=2)
    layers = parser.parse_args().layers
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto,) * 2)

    def put(value, *spec):
        return jax.device_put(value, NamedSharding(mesh, P(*spec)))

    params = [put(np.ones((16, 16), np.float32), "fsdp", "tp") for _ in range(layers)]
    x = put(np.ones((8, 16), np.float32), "fsdp")

    def loss(params, x):
        for w in params:
            x = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), P("fsdp", "tp"))
        return (x**2).mean()

    @functools.partial(jax.jit, donate_argnums=0, out_shardings=NamedSharding(mesh, P("fsdp", "tp")))
    def train_step(params, x):
        return [w - 0.1 * d for w, d in zip(params, jax.grad(loss)(params, x), strict=True)]

    @functools.partial(jax.jit, static_argnames="power")
    def scaled(x, power):
        return x.sum() ** power

    with mesh:
        for _ in range(4):
            params = train_step(params, x)
    jnp.sum(x)
    for power in (2, 2, 3):
        scaled(x, power=power)
    compiled = jax.jit(lambda a: a.sum(0)).lower(x).compile()
    for _ in range(3):
        compiled(x)
    for number in range(2):
        jax.jit(lambda a, number=number: a * 2 + number)(params[0])
    halved = jax.jit(
        jax.shard_map(lambda a: jax.lax.psum(a, "tp"), mesh=mesh, in_specs=P("fsdp", "tp"), out_specs=P("fsdp"))
    )
    halved(x)
    halved(x)
    with mesh:
        text = train_step.lower(params, x).compile().as_text()
    print(json.dumps({kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in ("all-reduce", "all-gather")}))


if __name__ == "__main__":
    main()
