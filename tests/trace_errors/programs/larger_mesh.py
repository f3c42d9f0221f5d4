import argparse

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--dp", type=int, default=4)
    p.add_argument("--tp", type=int, default=4)
    p.add_argument("--batch", type=int, default=32)
    return p.parse_args()


def main():
    args = parse()
    mesh = jax.make_mesh((args.dp, args.tp), ("dp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    w = jax.device_put(jnp.ones((64, 32)) / 64, NamedSharding(mesh, P(None, "tp")))
    x = jax.device_put(jnp.arange(args.batch * 64.0).reshape(args.batch, 64), NamedSharding(mesh, P("dp")))
    f = jax.jit(lambda w, x: jnp.tanh(x @ w).sum(-1))
    print(f(w, x).sum())


if __name__ == "__main__":
    main()
