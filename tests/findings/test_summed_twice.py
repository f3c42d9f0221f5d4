"""Sums of the backward pass that scale what the backward function of a custom_vjp gives, and by how much."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report

from tests.sweeps import xla_flags

SCRIPT = """
import json
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
specs = {"in_specs": (P("data"), P(None, "model")), "out_specs": P("data", "model")}

def gradients(sum_x, sum_w):
    @jax.custom_vjp
    def product(x, w):
        return jnp.tanh(x @ w)

    def forward(x, w):
        return product(x, w), (x, w)

    def backward(residuals, g):
        x, w = residuals
        d = g * (1 - jnp.tanh(x @ w) ** 2)
        return sum_x(d @ w.T), sum_w(x.T @ d)

    product.defvjp(forward, backward)
    layer = partial(jax.shard_map, mesh=mesh, **specs, check_vma=False)(lambda x, w: product(x, w))
    return jax.grad(lambda x, w: (layer(x, w) ** 2).sum(), argnums=(0, 1))

def same(value):
    return value

twice = gradients(lambda d: lax.psum(d, "model"), lambda d: lax.psum(d.T, "data").T)
once = gradients(same, same)
inputs = (jnp.arange(128.0).reshape(8, 16) / 128, jnp.arange(512.0).reshape(16, 32) / 512)

if __name__ == "__main__":
    print(json.dumps([float((a / b).mean()) for a, b in zip(jax.jit(twice)(*inputs), jax.jit(once)(*inputs))]))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("summed") / "summed.py"
    path.write_text(SCRIPT)
    return path


def report(script: Path, function: str) -> Report:
    final = last_capture(Request(f"{script}:{function}", live=False))
    assert final.failure is None, final.failure
    return inspect(final)


@pytest.mark.once
def test_what_is_summed_twice_is_so_many_times_too_large(script: Path) -> None:
    """The ratio to the gradients of the same program without the sums of its own."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": xla_flags(8),
    }
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    by_x, by_w = json.loads(done.stdout)
    found = {str(each.axes[0]): each for each in report(script, "twice").findings if each.rule == "SS03"}
    assert set(found) == {"data", "model"}
    for axis, ratio in (("model", by_x), ("data", by_w)):
        assert found[axis].message.endswith(f"once more what the custom_vjp has summed: {ratio:.0f} times its gradient")
        assert found[axis].fixes[0].title == "leave out " + (
            "lax.psum(d, 'model')" if axis == "model" else "lax.psum(d.T, 'data')"
        )
        assert found[axis].fixes[0].edits


def test_what_is_summed_once_is_not(script: Path) -> None:
    assert [each.message for each in report(script, "once").findings if each.rule == "SS03"] == []
