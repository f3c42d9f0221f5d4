# thread: jax-ml/jax#30095
# asks: Random numbers with an out_sharding over Auto axes
# truth: Explicit axes, or a constraint
import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("S",), axis_types=(AxisType.Auto,))
jax.set_mesh(mesh)
x = jax.random.normal(jax.random.key(1), (104,), out_sharding=P("S"))
print(x.sum())
