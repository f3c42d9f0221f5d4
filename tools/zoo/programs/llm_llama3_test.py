"""jax-llm-examples: Llama 3 as its own test of prefill and decode has it."""

import dataclasses

import jax
import jax.numpy as jnp
from checkouts import importable

importable("jax-llm-examples/llama3", "jax-llm-examples/llama3/tests")

import test_model
from llama3_jax import model

mesh = jax.make_mesh((1, 4, 1), ("x", "y", "z"), axis_types=(jax.sharding.AxisType.Explicit,) * 3)
config = dataclasses.replace(test_model.CFG, mesh=mesh, num_layers=2, embed=256, quant_layer=False, quant_cache=True)
decode_step = model.decode_step
tokens = jnp.ones((1, 32), jnp.int32)
weights = model.Weights.init(jax.random.key(0), config)
cache = model.KVCache.init(jax.random.key(0), config, 1)
with jax.sharding.set_mesh(mesh):
    found, _, cache = model.prefill(tokens, weights, cache, config)
found = found[:, :-1]
jax.sharding.set_mesh(mesh)
found, cache = decode_step(found, weights, cache, config)
decode_step_inputs = (found, weights, cache, config)
