"""The pass of what the partitioner gathers: that of the matmul which needs it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.collectives.stage import collectives_of
from shardscope.inspector.pipeline import inspect

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

def loss(ws, x):
    for w in ws:
        x = jnp.tanh(jnp.einsum("bi,ij->bj", x, w.astype(jnp.bfloat16), out_sharding=NamedSharding(mesh, P("x", "y"))))
    return (x.astype(jnp.float32) ** 2).mean()

step = jax.jit(jax.grad(loss))

def like(dtype):
    return jax.ShapeDtypeStruct((64, 64), dtype, sharding=NamedSharding(mesh, P("x", "y")))

inputs = ((like(jnp.float32),) * 3, like(jnp.bfloat16))
"""


@pytest.mark.parametrize("target", ["cpu", "tpu:v5p:2x2x2"])
def test_a_weight_that_is_gathered_again_is_gathered_in_the_backward_pass(tmp_path: Path, target: str) -> None:
    """Each gather has the pass in the path of the matmul that takes it, the first one if it serves both.

    From JAX 0.11 on XLA gives it the name of the weight, and gathers twice.
    """
    if target != "cpu":
        pytest.importorskip("libtpu")
    (tmp_path / "script.py").write_text(SCRIPT)
    report = inspect(last_capture(Request(f"{tmp_path / 'script.py'}:step", target=target, live=False)))
    stage = report.capture.stage("hlo-spmd")
    assert stage is not None
    text = stage.source.text()
    wanted: Counter[str] = Counter()
    for name in re.findall(r"(%all-gather\S*) = bf16\[64,32\]", text):
        paths = re.findall(rf" dot\([^\n]*{re.escape(name)}[,)][^\n]*op_name=\"([^\"]*)\"", text)
        wanted["backward" if all("transpose(" in path for path in paths) else "forward"] += 1
    assert wanted["forward"] == 3
    partitioned = report.program.stage("hlo-spmd")
    assert partitioned is not None
    found = [
        each
        for each in collectives_of(report.program, partitioned)
        if each.kind == "all-gather" and each.result_types[0].shape == (64, 32)
    ]
    assert Counter(each.direction for each in found) == wanted
