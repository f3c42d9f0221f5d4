"""A tree of specs with one layer too few, as a list beside the parameters' own."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

SPECS = {
    "embed": P("data"),
    "head": [{"w": P(None, "data"), "b": P()}],
}


def init(key):
    """Two layers of the head."""
    layers = [{"w": jax.random.normal(each, (8, 8)), "b": jnp.zeros(8)} for each in jax.random.split(key)]
    return {"embed": jnp.ones((16, 8)), "head": layers}


def main():
    """Place the parameters, and look one row up."""
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS, is_leaf=lambda each: isinstance(each, P))
    params = jax.device_put(init(jax.random.key(0)), shardings)
    x = params["embed"][3]
    for layer in params["head"]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    print(x.sum())


main()
