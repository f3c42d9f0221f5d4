"""Reductions of scattered gradients: wrong by the gradient that one device computes, and right with the fix."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect

from tests.findings.trying import verified

SCRIPT = """
import jax, jax.numpy as jnp
from functools import partial
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def loss(w, a):
    return jnp.mean((a @ w) ** 2)

@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma={checked})
def gradient(w, a):
    own = jax.grad(lambda shard: loss(lax.all_gather(shard, "x", tiled=True), a))(w)
    return {reduced}

@jax.jit
def error(w, a):
    true = jax.grad(loss)(w, a)
    return jnp.linalg.norm(gradient(w, a) - true) / jnp.linalg.norm(true)

error_inputs = (jnp.arange(128.0).reshape(16, 8) / 64 - 1, jnp.sin(jnp.arange(512.0)).reshape(32, 16))
"""

MEANS = {
    "unchecked": ("False", "lax.pmean(own, 'x')"),
    "checked": ("True", "lax.pcast(lax.pmean(own, 'x'), 'x', to='varying')"),
}


@pytest.mark.once
@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older JAX has no pcast")
@pytest.mark.parametrize("spelling", MEANS)
def test_the_fix_gives_the_gradient_of_one_device(spelling: str, tmp_path: Path) -> None:
    checked, reduced = MEANS[spelling]
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(checked=checked, reduced=reduced))
    request = Request(f"{script}:error", probe="none")
    capture = last_capture(request)
    assert capture.execution is not None
    report = verified(inspect(capture), request, inspect)
    (found,) = (each for each in report.findings if each.rule == "SS30")
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment.why
    (change,) = found.experiment.changes
    *_, before, after = map(float, re.findall(r"\d[\d.e+-]*", change))
    assert before > 0.1
    assert after < 1e-5


def test_an_error_comes_before_what_follows_from_it(tmp_path: Path) -> None:
    """With the fix, the norm's sum is of different blocks: its error is gone as well, though it saves more bytes."""
    script = tmp_path / "script.py"
    norms = """
def norm_of(reduce):
    def body(w, a):
        own = reduce(jax.grad(lambda shard: loss(lax.all_gather(shard, "x", tiled=True), a))(w))
        return own, jnp.sqrt(jnp.sum(lax.psum(jnp.concatenate([own * own, own ** 4]), "x")))
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()), check_vma=False)

wrong, right = norm_of(lambda own: lax.pmean(own, "x")), norm_of(lambda own: own / lax.axis_size("x"))
wrong_inputs = right_inputs = error_inputs
"""
    script.write_text(SCRIPT.format(checked="False", reduced="own") + norms)
    found = {
        name: [
            each.rule
            for each in inspect(last_capture(Request(f"{script}:{name}", live=False))).findings
            if each.severity == "error"
        ]
        for name in ("wrong", "right")
    }
    assert found == {"wrong": ["SS30", "SS04"], "right": []}


SUMMED = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def mixed(a):
    whole = lax.all_gather(a, "x", tiled=True) * (1 + lax.axis_index("x"))
    return lax.pcast(lax.psum(lax.psum_scatter({whole}, "x", tiled=True), "x"), "x", to="varying")

mixed_inputs = (jnp.arange(128.0).reshape(16, 8),)
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="before 0.10, JAX types no unreduced values")
def test_a_cast_to_summands_changes_no_finding(tmp_path: Path) -> None:
    """The cast changes a type alone: the program computes the same."""
    found = []
    for number, whole in enumerate(("whole", "lax.pcast(whole, 'x', to='unreduced')")):
        script = tmp_path / f"script{number}.py"
        script.write_text(SUMMED.format(whole=whole))
        report = inspect(last_capture(Request(f"{script}:mixed", live=False)))
        found.append([(each.rule, each.place.source.line) for each in report.findings])
    assert ("SS30", 12) in found[0]
    assert found[0] == found[1]
