"""Gradients that are returned replicated although their parameters are sharded, in whatever tree and form."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect

from tests.findings.test_variants import libtpu

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older partitioners choose other strategies")

SCRIPT = """
import dataclasses
from typing import NamedTuple
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))

class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array

@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    kernel: jax.Array

def loss(leaves, x):
    for leaf in leaves:
        x = jnp.tanh(x @ jax.lax.with_sharding_constraint(leaf, whole))
    return jnp.mean(x ** 2)

def gradient(tree, x):
    return jax.grad(lambda tree: loss(jax.tree.leaves(tree), x))(tree)

def clip(tree):
    norm = jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf / jnp.maximum(norm, 1.0), tree)

def step(trees, x):
    found = {name: gradient(tree, x) for name, tree in trees.items()}
    found["scaled"] = jax.tree.map(lambda leaf: leaf * 0.125, found["scaled"])
    found["averaged"] = jax.tree.map(lambda leaf: leaf / x.shape[0], found["averaged"])
    found["clipped"] = clip(found["clipped"])
    found["used"] = {"w": found["used"]["w"] @ found["used"]["w"]}
    return found

def placed(*sizes, sharding=split):
    return jax.ShapeDtypeStruct(sizes, jnp.float32, sharding=sharding)

trees = {
    "plain": {"w": placed(256, 512)},
    "scaled": {"w": placed(256, 256)},
    "averaged": [placed(256, 384)],
    "clipped": {"w": placed(256, 640)},
    "tuple": Pair(placed(256, 256), placed(256, 256)),
    "data": Layer(placed(256, 128)),
    "replicated": {"w": placed(256, 768, sharding=whole)},
    "sharded": {"w": placed(256, 896)},
    "used": {"w": placed(256, 256)},
}
kept = {name: jax.tree.map(lambda _: split if name == "sharded" else whole, tree) for name, tree in trees.items()}
program = jax.jit(step, out_shardings=kept)
program_inputs = (trees, placed(64, 256))
"""

FOUND = {
    "result['plain']['w']",
    "result['scaled']['w']",
    "result['averaged'][0]",
    "result['clipped']['w']",
    "result['tuple'].first",
    "result['tuple'].second",
    "result['data'].kernel",
}
"""All but the replicated one, the one that is returned sharded, and the one that a product takes whole."""


MAX_LISTED = 6


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5e:2x4", marks=libtpu)])
def test_each_part_of_a_combined_sum_is_judged_by_itself(tmp_path: Path, target: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    report = inspect(last_capture(Request(f"{script}:program", target=target, live=False)))
    found = [each for each in report.findings if each.rule == "SS01" and "returned replicated" in each.message]
    (only,) = found
    assert only.message.startswith(f"{len(FOUND)} results ")
    named = {key for key, _ in only.evidence if key.startswith("result")}
    assert named < FOUND
    assert len(named) == MAX_LISTED
    assert only.severity == ("info" if target == "cpu" else "warning")
