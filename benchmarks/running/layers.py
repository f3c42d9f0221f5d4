"""Large models: training steps of 32 unrolled layers, and of 24 layers of experts, with types for arguments."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, EXPERTS = 8, 64, 128, 4, 512, 8
mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto, AxisType.Auto))

ATTENTION = {
    **dict.fromkeys(("query", "key", "value"), ((WIDTH, WIDTH), P("fsdp", "tp"))),
    "out": ((WIDTH, WIDTH), P("tp", "fsdp")),
    "scale": ((WIDTH,), P()),
}
DENSE = {"up": ((WIDTH, HIDDEN), P("fsdp", "tp")), "down": ((HIDDEN, WIDTH), P("tp", "fsdp"))}
SPARSE = {
    "router": ((WIDTH, EXPERTS), P()),
    "up": ((EXPERTS, WIDTH, HIDDEN), P("fsdp", None, "tp")),
    "down": ((EXPERTS, HIDDEN, WIDTH), P("fsdp", "tp", None)),
}


def along(x, *axes):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*axes)))


def normalized(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(layer, x):
    q, k, v = ((x @ layer[name]).reshape(*x.shape[:2], HEADS, -1) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e30)), v)
    return mixed.reshape(x.shape) @ layer["out"]


def dense(layer, x):
    return along(jax.nn.gelu(x @ layer["up"]), "fsdp", None, "tp") @ layer["down"]


def sparse(layer, x):
    gates = jax.nn.softmax(x @ layer["router"])
    chosen = jax.nn.one_hot(jnp.argmax(gates, -1), EXPERTS)
    sent = along(jnp.einsum("bse,bsd->ebsd", chosen, x), "fsdp", None, None, None)
    hidden = jax.nn.gelu(jnp.einsum("ebsd,edf->ebsf", sent, layer["up"]))
    back = jnp.einsum("ebsf,efd->ebsd", hidden, layer["down"])
    return along(jnp.einsum("ebsd,bse->bsd", back, gates * chosen), "fsdp")


def step_of(feed_forward):
    def loss(layers, x, y):
        for layer in layers:
            x = along(x + attention(layer, normalized(x, layer["scale"])), "fsdp")
            x = along(x + feed_forward(layer, normalized(x, layer["scale"])), "fsdp")
        return jnp.mean((x - y) ** 2)

    def step(layers, x, y):
        value, gradients = jax.value_and_grad(loss)(layers, x, y)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, layers, gradients), value

    return jax.jit(step, donate_argnums=0)


def inputs_of(layer, count):
    def typed(shape, spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    batch = typed((BATCH, LENGTH, WIDTH), P("fsdp"))
    return [{name: typed(*leaf) for name, leaf in layer.items()}] * count, batch, batch


dense_step, dense_step_inputs = step_of(dense), inputs_of(ATTENTION | DENSE, 32)
moe_step, moe_step_inputs = step_of(sparse), inputs_of(ATTENTION | SPARSE, 24)
