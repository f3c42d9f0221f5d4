"""Two layers, two of three arguments with shardings: propagation finds the rest.

`x` is sharded over `data`, `w1` by columns over `model`; nothing is said of `w2` and of the result. The columns of
`w1` meet the rows of `w2`, so these become sharded over `model` too, the second product needs an all-reduce, and the
result keeps the sharding of `x`'s rows. The arguments are abstract: shapes and shardings, no values.
"""

import jax
import jax.numpy as jnp
from jax import NamedSharding, P, ShapeDtypeStruct
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
by_examples = NamedSharding(mesh, P("data", None))
by_columns = NamedSharding(mesh, P(None, "model"))


def predict(x, w1, w2):
    """A perceptron without biases."""
    hidden = jnp.tanh(x) @ w1
    return jnp.sin(hidden @ w2)


predict = jax.jit(predict, in_shardings=(by_examples, by_columns, None))
predict_inputs = (
    ShapeDtypeStruct((16, 128), jnp.float32, sharding=by_examples),
    ShapeDtypeStruct((128, 256), jnp.float32, sharding=by_columns),
    ShapeDtypeStruct((256, 10), jnp.float32),
)
