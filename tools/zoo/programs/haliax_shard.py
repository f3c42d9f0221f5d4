"""Haliax, its tests of partitioning: arrays that are sharded by their axes' names."""

import haliax as hax
import jax
import numpy as np
from haliax.partitioning import ResourceAxis, named_jit, set_mesh
from jax.sharding import Mesh

resources = {"dim2": ResourceAxis.DATA, "dim3": ResourceAxis.MODEL}
mesh = Mesh(np.array(jax.devices()).reshape(-1, 2), (ResourceAxis.DATA, ResourceAxis.MODEL))
first, second, third = (hax.Axis(f"dim{number}", 4 << number) for number in (1, 2, 3))
set_mesh(mesh).__enter__()
mesh.__enter__()


@named_jit(out_axis_resources=resources)
def do_shard(x, y):
    x = hax.shard(x, resources)
    jax.debug.inspect_array_sharding(x.array, callback=print)
    y = hax.shard(y, resources)
    jax.debug.inspect_array_sharding(y.array, callback=print)
    return x, y


def do_shard_inputs():
    return hax.ones((first, second)), hax.ones((second, third))
