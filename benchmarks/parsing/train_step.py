"""The program whose texts are measured: one FSDP+TP training step of a decoder with unrolled layers.

Run as a script, it writes one text to a file: `python train_step.py cpu|tpu|stablehlo|stablehlo-locations LAYERS FILE`.
The TPU text needs libtpu but no TPU; it is compiled for 64 chips of v5p.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, WORDS = 64, 512, 1024, 16, 4096, 32768
LAYER = {
    "query": ((WIDTH, WIDTH), P("fsdp", "tensor")),
    "key": ((WIDTH, WIDTH), P("fsdp", "tensor")),
    "value": ((WIDTH, WIDTH), P("fsdp", "tensor")),
    "out": ((WIDTH, WIDTH), P("tensor", "fsdp")),
    "up": ((WIDTH, HIDDEN), P("fsdp", "tensor")),
    "down": ((HIDDEN, WIDTH), P("tensor", "fsdp")),
    "scale": ((WIDTH,), P()),
}
ENDS = {"embed": ((WORDS, WIDTH), P("tensor", "fsdp")), "unembed": ((WIDTH, WORDS), P("fsdp", "tensor"))}


def normalized(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(layer, x):
    def heads(name):
        return (x @ layer[name]).reshape(*x.shape[:2], HEADS, WIDTH // HEADS)

    scores = jnp.einsum("bqhd,bkhd->bhqk", heads("query"), heads("key")) / (WIDTH // HEADS) ** 0.5
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, heads("value"))
    return mixed.reshape(x.shape) @ layer["out"]


def loss(parameters, tokens, mesh):
    batch = NamedSharding(mesh, P(("data", "fsdp")))
    x = jax.lax.with_sharding_constraint(parameters["ends"]["embed"][tokens[:, :-1]], batch)
    for number, layer in enumerate(parameters["layers"]):
        with jax.named_scope(f"layer_{number}"):
            x = x + attention(layer, normalized(x, layer["scale"]))
            x = x + jax.nn.gelu(normalized(x, layer["scale"]) @ layer["up"]) @ layer["down"]
            x = jax.lax.with_sharding_constraint(x, batch)
    logits = jax.nn.log_softmax(x @ parameters["ends"]["unembed"])
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))


def adam(parameter, gradient, mean, square):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.99 * square + 0.01 * gradient * gradient
    return parameter - 1e-3 * mean / (jnp.sqrt(square) + 1e-8), mean, square


def step(parameters, means, squares, tokens, mesh):
    value, gradients = jax.value_and_grad(loss)(parameters, tokens, mesh)
    updated = jax.tree.map(adam, parameters, gradients, means, squares)
    picked = [jax.tree.map(lambda _, three, i=i: three[i], parameters, updated) for i in range(3)]
    return *picked, value


def arguments(layers, mesh):
    def abstract(leaf):
        return jax.ShapeDtypeStruct(leaf[0], jnp.float32, sharding=NamedSharding(mesh, leaf[1]))

    state = {"ends": ENDS, "layers": [LAYER] * layers}
    parameters = jax.tree.map(abstract, state, is_leaf=lambda leaf: isinstance(leaf, tuple))
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32, sharding=NamedSharding(mesh, P(("data", "fsdp"))))
    return parameters, parameters, parameters, tokens


def mesh_of(devices, shape):
    return Mesh(devices.reshape(shape), ("data", "fsdp", "tensor"), axis_types=(AxisType.Auto,) * 3)


def lowered(layers, mesh, platform):
    jitted = jax.jit(partial(step, mesh=mesh), donate_argnums=(0, 1, 2))
    return jitted.trace(*arguments(layers, mesh)).lower(lowering_platforms=(platform,))


def text(kind, layers):
    from jax.experimental import mesh_utils, topologies

    if kind == "tpu":
        topology = topologies.get_topology_desc(platform="tpu", topology_name="v5p:4x4x4", chip_config_name="megacore")
        mesh = mesh_of(mesh_utils.create_device_mesh((64,), topology.devices), (4, 4, 4))
        return lowered(layers, mesh, "tpu").compile().as_text()
    program = lowered(layers, mesh_of(mesh_utils.create_device_mesh((8,)), (2, 2, 2)), "cpu")
    if kind == "cpu":
        return program.compile().as_text()
    return program.as_text(debug_info=kind == "stablehlo-locations")


if __name__ == "__main__":
    kind, layers, path = sys.argv[1:]
    os.environ["TPU_SKIP_MDS_QUERY"] = "1"
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    Path(path).write_text(text(kind, int(layers)))
