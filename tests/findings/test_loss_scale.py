"""Gradients taken inside of a shard_map without its check, of a loss that is summed in there, against differences."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect

from tests.findings.trying import verified

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
blocks = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()), check_vma=False)
copies = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)

def own(w, a):
    return jnp.mean((a @ w) ** 2)

def gathered(w, a):
    return own(lax.all_gather(w, "x", tiled=True), a)

def gradient(loss, w, a):
    value, slope = jax.value_and_grad(loss)(w, a)
    return slope, value

@blocks
def blocks_sum(w, a):
    return gradient(lambda w, a: lax.psum(gathered(w, a), "x"), w, a)

@blocks
def blocks_mean(w, a):
    return gradient(lambda w, a: lax.pmean(gathered(w, a), "x"), w, a)

@blocks
def blocks_mean_divided(w, a):
    slope, value = gradient(lambda w, a: lax.pmean(gathered(w, a), "x"), w, a)
    return slope / lax.axis_size("x"), value

@blocks
def blocks_own(w, a):
    slope, value = gradient(gathered, w, a)
    return slope, lax.psum(value, "x")

@copies
def copies_sum_averaged(w, a):
    slope, value = gradient(lambda w, a: lax.psum(own(w, a), "x"), w, a)
    return lax.pmean(slope, "x"), value

@copies
def copies_mean_summed(w, a):
    slope, value = gradient(lambda w, a: lax.pmean(own(w, a), "x"), w, a)
    return lax.psum(slope, "x"), value

@copies
def copies_own(w, a):
    slope, value = gradient(own, w, a)
    return lax.pmean(slope, "x"), lax.pmean(value, "x")

@jax.jit
@copies
def also_a_sum_of_copies(w, a):
    slope, value = gradient(lambda w, a: lax.pmean(own(w, a), "x"), w, a)
    return lax.psum(slope, "x"), value + lax.psum(jnp.sum(w), "x")

def ratio(step, w, a):
    v = jnp.cos(jnp.arange(float(w.size))).reshape(w.shape)  # of a quadratic function, differences are exact
    return jnp.vdot(step(w, a)[0], v) / (step(w + v, a)[1] - step(w - v, a)[1]) * 2

@jax.jit
def ratios(w, a):
    of_blocks = (blocks_sum, blocks_mean, blocks_mean_divided, blocks_own)
    steps = (*of_blocks, copies_sum_averaged, copies_mean_summed, copies_own)
    return jnp.stack([ratio(step, w * (1 + number), a) for number, step in enumerate(steps)])

ratios_inputs = (jnp.sin(jnp.arange(128.0)).reshape(16, 8), jnp.sin(jnp.arange(512.0)).reshape(32, 16))
also_a_sum_of_copies_inputs = ratios_inputs
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX some spellings are not found")
def test_what_is_too_large_by_differences_is_found(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    capture = last_capture(Request(f"{script}:ratios", probe="none"))
    assert capture.complete, capture.failure
    assert capture.execution is not None
    (output,) = capture.execution.outputs
    assert output.values is not None
    values = [float(each) for each in output.values.strip("[]").replace(",", " ").split()]
    assert values == pytest.approx([4, 4, 1, 1, 1, 4, 1], rel=1e-3)

    functions = [node for node in ast.parse(SCRIPT).body if isinstance(node, ast.FunctionDef)]
    steps = [node for node in functions if node.name.startswith(("blocks_", "copies_"))]
    wrong = {node.name for node, value in zip(steps, values, strict=True) if value > 2}
    errors = [each for each in inspect(capture).findings if each.severity == "error"]
    assert {each.rule for each in errors} == {"SS03"}
    assert all(each.message.startswith("the gradient is 4 times that of the loss") for each in errors)
    lines = {each.place.source.line for each in errors}
    assert {node.name for node in steps if lines & {*range(node.lineno, (node.end_lineno or 0) + 1)}} == wrong


@pytest.mark.once
@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX some spellings are not found")
def test_a_fix_is_not_verified_where_a_gradient_stays_wrong(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    request = Request(f"{script}:also_a_sum_of_copies", probe="none")
    report = verified(inspect(last_capture(request)), request, inspect)
    trials = [fix.experiment for each in report.findings if each.rule == "SS04" for fix in each.fixes if fix.experiment]
    assert [trial.helps for trial in trials] == [False]
    assert trials[0].why.startswith("still wrong: the gradient is 4 times")
