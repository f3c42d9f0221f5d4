"""What a helper communicates for several callers, and gradients of activations that reach an argument as they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.collectives import collectives
from shardscope.inspector.report import Report

SCRIPT = '''
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("t",), axis_types=(AxisType.Auto,))

def like(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def gather(w):
    return lax.all_gather(w, "t", tiled=True)

@partial(jax.shard_map, mesh=mesh, in_specs=(P(None, "t"), P(None, "t"), P("t")), out_specs=P("t"))
def layers(ws, vs, x):
    def layer(x, weights):
        x = jnp.tanh(x @ gather(weights[0]))
        return jnp.sin(x @ gather(weights[1])), None
    return lax.scan(layer, x, (ws, vs))[0]

layers_inputs = like((3, 16, 16), None, "t"), like((3, 16, 16), None, "t"), like((16, 16), "t")

@jax.jit
def tensor_parallel(params, x):
    """The batch is whole on each device: nothing is summed for its gradients."""
    def loss(params):
        h = x @ params["first"] + params["positions"]
        return jnp.sum(jnp.square(jnp.tanh(h @ params["up"]) @ params["down"]))
    return jax.grad(loss)(params)

tensor_parallel_inputs = {
    "first": like((32, 32)), "positions": like((16, 32)), "up": like((32, 64), None, "t"),
    "down": like((64, 32), "t"),
}, like((16, 32))
'''


def report(tmp_path: Path, function: str, target: str) -> Report:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    *_, final = capture(Request(f"{script}:{function}", live=False, target=target))
    if final.failure is not None and final.failure.kind == "usage" and target != "cpu":
        pytest.skip("nothing here compiles for it")
    assert final.failure is None, final.failure
    return inspect(final)


def test_each_call_of_a_helper_has_its_line(tmp_path: Path) -> None:
    """The lines are those that Python's own parser finds."""
    calls = [each for each in ast.walk(ast.parse(SCRIPT)) if isinstance(each, ast.Call)]
    lines = {each.lineno for each in calls if isinstance(each.func, ast.Name) and each.func.id == "gather"}
    assert len(lines) == 2
    rows = [str(row.cells[-1]) for row in collectives(report(tmp_path, "layers", "cpu")).rows]
    assert {row.split(" ← ")[0] for row in rows} == {f"line {line}" for line in lines}


@pytest.mark.once
@pytest.mark.parametrize("target", ["cpu", "tpu:v5p:2x2x2"])
def test_the_gradient_of_an_activation_is_no_gradient_sync(tmp_path: Path, target: str) -> None:
    """It is that of the positions as well, and of the products before it."""
    found = report(tmp_path, "tensor_parallel", target).communication
    assert found
    assert {each.strategy for each in found} == {"tensor parallelism"}
