# thread: -
# asks: device_put takes a spec, and no mesh is set
# truth: NamedSharding, or set_mesh
import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
batch = {"x": np.ones((8, 4), np.float32), "y": np.ones((8,), np.float32)}
batch = jax.device_put(batch, P("data"))
print(jax.jit(lambda b: (b["x"].sum(1) - b["y"]).mean())(batch))
