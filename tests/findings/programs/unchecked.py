"""SS06: what leaves an unchecked shard_map, which a run shows."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
unchecked = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
left_out = unchecked(lambda v: jnp.sum(v))
summed = unchecked(lambda v: lax.psum(jnp.sum(v), "x"))
returned = jax.shard_map(lambda v: v, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
named = jax.shard_map(lambda v: v, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
alone = jax.make_mesh((4, 1), ("x", "z"), axis_types=(AxisType.Auto,) * 2)
along_one = jax.shard_map(lambda v: v, mesh=alone, in_specs=P("z"), out_specs=P(), check_vma=False)
named_inputs = along_one_inputs = left_out_inputs = summed_inputs = returned_inputs = (jnp.arange(8.0),)
