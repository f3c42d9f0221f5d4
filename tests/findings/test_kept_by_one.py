"""Sums to which one device of each group adds before they are summed once more."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report

MASKED = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

def masked(keeps):
    def fn(x, y):
        whole = lax.psum(jnp.sin(x), "data")
        kept = jnp.where(keeps(lax.axis_index("data")), whole, jnp.zeros_like(whole))
        return lax.psum(kept + jnp.cos(y), "data")
    return jax.jit(jax.shard_map(fn, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P(), check_vma=False))

of_one = masked(lambda i: i == 2)
of_two = masked(lambda i: i < 2)
inputs = (jnp.ones((8, 16)), jnp.ones((8, 16)))
"""


@pytest.mark.parametrize(("function", "devices"), [("of_one", {2}), ("of_two", {0, 1})])
def test_a_sum_that_one_device_of_each_group_adds_to(tmp_path: Path, function: str, devices: set[int]) -> None:
    """By numpy one sum of what each device has is the same where one device keeps the first sum, and only there."""
    x, y = np.random.default_rng(0).normal(size=(2, 4, 2, 16))
    twice = sum(y[each] + (x.sum(0) if each in devices else 0) for each in range(4))
    (tmp_path / "script.py").write_text(MASKED)
    report = inspect(last_capture(Request(f"{tmp_path / 'script.py'}:{function}", live=False, probe="none")))
    found = [each for each in report.findings if each.rule == "SS28"]
    assert bool(found) == np.allclose(twice, (x + y).sum(0))


TIED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

def loss(table, ids):
    return jax.nn.logsumexp(jnp.tanh(table[ids]) @ table.T, -1).mean()

twice = jax.jit(jax.grad(loss))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=False)
def once(table, ids):
    return jax.lax.pmean(jax.grad(loss)(table, ids), "data")

def like(dtype, spec, *shape):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

inputs = like(jnp.float32, P(), 512, 128), like(jnp.int32, P("data"), 64, 32)
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_gradients_of_a_tied_table_on_tpus(tmp_path: Path) -> None:
    """The program that adds each device's parts first has one sum of the table less; XLA's text says how many."""
    (tmp_path / "script.py").write_text(TIED)

    def report_of(function: str) -> Report:
        request = Request(f"{tmp_path / 'script.py'}:{function}", target="tpu:v5p:2x2x2", live=False, probe="none")
        return inspect(last_capture(request))

    def sums(report: Report) -> int:
        stage = report.capture.stage("hlo")
        assert stage is not None
        return len(re.findall(r"= f32\[512,128\]\S* all-reduce\(", stage.source.text()))

    twice, once = map(report_of, ("twice", "once"))
    assert (sums(twice), sums(once)) == (2, 1)
    (found,) = (each for each in twice.findings if each.rule == "SS28")
    assert found.saved_bytes == 2 * 512 * 128 * 4 * 3 // 4
    assert not [each for each in once.findings if each.rule == "SS28"]
