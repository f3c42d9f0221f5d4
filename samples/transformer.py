"""A transformer's train step in plain `jit`: the partitioner communicates.

Two layers, FSDP over `data` and tensor parallelism over `model`, said with nothing but the shardings of the
parameters and a few constraints. Each matrix is gathered over `data` where it is used, partial products are reduced
over `model`, gradients over `data`. Loss, gradient and the Adam update are one function whose state is donated, so
that old and new parameters share their memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding, P, lax
from jax.sharding import AxisType

LAYERS, VOCABULARY, BATCH, LENGTH, EMBED, HEADS, HEAD, HIDDEN = 2, 64, 8, 16, 32, 4, 8, 64
RATE, BETA1, BETA2, EPSILON = 1e-2, 0.9, 0.99, 1e-5
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))

# Of each parameter: its shape, and its sharding. One dimension is over `data` (FSDP), another over `model` (TP).
LAYER = {
    "norm1": ((EMBED,), P()),
    "qkv": ((EMBED, 3, HEADS, HEAD), P("data", None, "model")),
    "out": ((HEADS, HEAD, EMBED), P("model", None, "data")),
    "norm2": ((EMBED,), P()),
    "up": ((EMBED, HIDDEN), P("data", "model")),
    "down": ((HIDDEN, EMBED), P("model", "data")),
}
EMBEDDING = ((VOCABULARY, EMBED), P("model", "data"))


def constrain(x, *spec):
    """`x`, sharded as `spec` says."""
    return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


def normalize(x, scale):
    """Root mean square normalization."""
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(params, x):
    """Causal self-attention; the heads are sharded over `model`."""
    q, k, v = constrain(jnp.einsum("bte,ezhd->zbhtd", x, params["qkv"]), None, "data", "model")
    scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(HEAD)
    scores = jnp.where(np.tril(np.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    return jnp.einsum("bhts,bhsd,hde->bte", jax.nn.softmax(scores), v, params["out"])


def mlp(params, x):
    """Two matrices; the hidden features are sharded over `model`."""
    return constrain(jax.nn.gelu(x @ params["up"]), "data", None, "model") @ params["down"]


def loss(params, tokens):
    """The cross entropy of each token given those before it."""
    table = constrain(params["embedding"], "model", None)  # looking up in a table sharded along both dimensions is dear
    x = constrain(table[tokens], "data")
    for layer in params["layers"]:
        x = constrain(x + attention(layer, normalize(x, layer["norm1"])), "data")
        x = constrain(x + mlp(layer, normalize(x, layer["norm2"])), "data")
    logits = jax.nn.log_softmax(x[:, :-1] @ table.T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))


def train_step(state, tokens):
    """One step of Adam: the next state, and the loss before it."""
    params, mean, square, step = state
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    step = step + 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, mean, gradient)
    square = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g * g, square, gradient)

    def update(p, m, s):
        return p - RATE * (m / (1 - BETA1**step)) / (jnp.sqrt(s / (1 - BETA2**step)) + EPSILON)

    return (jax.tree.map(update, params, mean, square), mean, square, step), value


train_step = jax.jit(train_step, donate_argnums=0)


def train_step_inputs():
    """The state before the first step, and tokens sharded along the batch."""
    random = np.random.default_rng(0)

    def initial(shape_and_spec):
        shape, spec = shape_and_spec
        values = np.ones(shape) if len(shape) == 1 else random.normal(size=shape) * 0.2
        return jax.device_put(values.astype(np.float32), NamedSharding(mesh, spec))

    params = {
        "embedding": initial(EMBEDDING),
        "layers": [{name: initial(LAYER[name]) for name in LAYER} for _ in range(LAYERS)],
    }
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    step = jax.device_put(np.int32(0), NamedSharding(mesh, P()))
    tokens = random.integers(VOCABULARY, size=(BATCH, LENGTH), dtype=np.int32)
    return (params, mean, square, step), jax.device_put(tokens, NamedSharding(mesh, P("data")))


if __name__ == "__main__":
    state, tokens = train_step_inputs()
    for _ in range(5):
        state, value = train_step(state, tokens)
        print(value)
