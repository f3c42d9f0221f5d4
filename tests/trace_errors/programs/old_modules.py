import jax.experimental.maps
import jax.experimental.maps as older
import jax.numpy as jnp
from jax import tree_map as over_leaves
from jax.experimental import maps
from jax.experimental.shard_map import shard_map
from jax.sharding import PartitionSpec as P

mesh = jax.experimental.maps.Mesh(jax.devices(), ("x",))
same = older.Mesh(jax.devices(), ("x",))
doubled = over_leaves(lambda leaf: 2 * leaf, {"w": jnp.ones(8)})
summed = shard_map(lambda x: jax.lax.psum(x, "x"), mesh, P("x"), P(), check_rep=False)
print(summed(doubled["w"]).addressable_data(0).device(), maps.Mesh is type(mesh), mesh == same)
