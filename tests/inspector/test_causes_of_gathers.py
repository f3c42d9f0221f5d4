"""Causes of gathers in a training step whose weights are sharded along the axis of the batch, without constraints."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.shardings.collective_causes import causes_of

from tests.sweeps import sampled

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
put = lambda shape, *spec: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale

def loss(weights, tokens, mask):
    table, layers = weights
    x = table[tokens]
    for layer in layers:
        up, down = (layer[name].astype(DTYPE) for name in ("up", "down"))
        h = jax.nn.relu(jnp.einsum("btd,df->btf", norm(x, layer["scale"]), up)) ** 2
        x = x + jnp.einsum("btf,fd->btd", h, down)
    chosen = jax.nn.log_softmax(jnp.einsum("btd,vd->btv", x, table))[:, :, 0]
    return (chosen * mask).mean()

@jax.jit
def step(weights, tokens, mask):
    gradients = jax.grad(loss)(weights, tokens, mask)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

layer = {"up": put((64, 512), "x"), "down": put((512, 64), None, "x"), "scale": put((64,), "x")}
tokens = jax.ShapeDtypeStruct((16, 32), jnp.int32, sharding=NamedSharding(mesh, P("x")))
step_inputs = ((put((128, 64), None, "x"), [layer] * 2), tokens, put((16, 32), "x"))
"""


@pytest.mark.parametrize("dtype", sampled(["float32", "bfloat16"], 2, 1))
def test_what_is_gathered_is_what_the_cause_names(tmp_path: Path, dtype: str) -> None:
    """One device's part of the named value has as many elements as the compiled gather takes."""
    script = tmp_path / "program.py"
    script.write_text(SCRIPT.replace("DTYPE", f'"{dtype}"'))
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    gathers = [each for each in report.collectives if each.stage == "hlo" and each.kind == "all-gather"]
    assert len({each.argument for each in gathers}) > 2
    for gather in gathers:
        for cause in causes_of(report.program, gather):
            assert cause.moved is not None
            assert cause.elements == gather.operand_types[0].elements, (gather.op_name, str(cause.moved))
            if gather.argument is not None:
                assert cause.moved.is_operand


RAGGED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
put = lambda shape, dtype, *spec: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))
step = jax.jit(jax.lax.ragged_dot)
step_inputs = (put((16, 64), jnp.float32, None, "x"), put((4, 64, 32), jnp.float32, None, "x"), put((4,), jnp.int32))
"""


def test_the_sum_of_a_ragged_product_contracts(tmp_path: Path) -> None:
    """Its second dimension is summed over, and sharded: TPUs keep the product as it is."""
    pytest.importorskip("libtpu")
    script = tmp_path / "program.py"
    script.write_text(RAGGED)
    *_, final = capture(Request(f"{script}:step", live=False, target="tpu:v5e:2x4"))
    report = inspect(final)
    (found,) = (each for each in report.collectives if each.stage == "hlo")
    (cause,) = causes_of(report.program, found)
    assert found.kind == "all-reduce"
    assert (cause.primitive, cause.effect, cause.is_contraction) == ("ragged_dot_general", "sum", True)
