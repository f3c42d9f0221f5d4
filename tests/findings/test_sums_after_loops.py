"""Sums in loops that accumulate, as users write them: the fix moves them behind the loop, and is tried."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

from tests.findings.trying import tried_in
from tests.sweeps import sampled

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType, NamedSharding
mesh = jax.make_mesh((8,), ("dp",), axis_types=(AxisType.Auto,))
loose = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P(), check_vma=False)
strict = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P())

def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)

@jax.jit
@loose
def inline(w, xs):
    def body(i, total):
        return total + lax.psum(jax.grad(loss)(w, xs[i]), "dp")
    total = lax.fori_loop(0, xs.shape[0], body, jnp.zeros_like(w))
    return total / xs.shape[0]

@jax.jit
@loose
def pair(w, xs):
    def body(carry, x):
        total, n = carry
        l, g = jax.value_and_grad(loss)(w, x)
        g = lax.pmean(g, "dp")
        return (total + g, n + l), None
    (total, n), _ = jax.lax.scan(body, (jnp.zeros_like(w), 0.0), xs)
    return total + lax.pmean(n, "dp")

@jax.jit
@loose
def apart(w, xs):
    def body(carry, x):
        l, g = jax.value_and_grad(loss)(w, x)
        g = lax.pmean(g, "dp")
        l = lax.pmean(l, "dp")
        return jax.tree.map(jnp.add, carry, (l, g)), None
    (total, n), _ = jax.lax.scan(body, (0.0, jnp.zeros_like(w)), xs)
    return total + n

def averaged(w, x):
    g = lax.pmean(jax.grad(loss)(w, x), "dp")
    return g

@jax.jit
@loose
def helped(w, xs):
    def body(total, x):
        return jax.tree.map(jnp.add, total, averaged(w, x)), None
    total, _ = lax.scan(body, jnp.zeros_like(w), xs)
    return total

def averaged_beside(w, x):
    l, g = jax.value_and_grad(loss)(w, x)
    g = lax.pmean(g, "dp")
    return l, 2 * g

@jax.jit
@loose
def helped_beside(w, xs):
    def body(carry, x):
        total, n = carry
        l, g = averaged_beside(w, x)
        return (total + g, n + l), None
    (total, n), _ = lax.scan(body, (jnp.zeros_like(w), 0.0), xs)
    return total + lax.pmean(n, "dp")

@jax.jit
@strict
def checked(w, xs):
    own = lax.pcast(w, "dp", to="varying")
    def body(total, x):
        g = lax.psum(jax.grad(loss)(own, x), axis_name="dp")
        return jax.tree.map(jnp.add, total, g), None
    total = lax.scan(body, jnp.zeros_like(w), xs)[0]
    return total

@jax.jit
@strict
def shared(w, xs):
    def body(carry, x):
        total, n = carry
        l, g = jax.value_and_grad(loss)(w, x)
        return (jax.tree.map(jnp.add, total, g), n + 1), l
    (total, n), losses = lax.scan(body, (jnp.zeros_like(w), 0), xs)
    return total / n

@jax.jit
@strict
def twice(w, xs):
    own = lax.pcast(w, "dp", to="varying")
    def body(total, x):
        return total + lax.pmean(jax.grad(loss)(own, x), "dp"), None
    total = lax.scan(body, lax.pcast(jnp.zeros_like(w), "dp", to="varying"), xs)[0]
    return lax.pmean(total, "dp")

@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P())
def mean_loss(w, xs):
    def body(total, x):
        return total + loss(w, x), None
    total, _ = lax.scan(body, lax.pcast(0.0, "dp", to="varying"), xs)
    return lax.pmean(total, "dp")

outside = jax.jit(jax.grad(mean_loss))

@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P())
def mean_loss_of_part(w, xs):
    stage = jnp.tanh(w)
    def body(total, x):
        return total + loss(stage, x), None
    return lax.pmean(lax.scan(body, lax.pcast(0.0, "dp", to="varying"), xs)[0], "dp")

assigned = jax.jit(jax.grad(mean_loss_of_part))

split = partial(jax.jit, in_shardings=(NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "dp"))))

@split
def propagated(w, xs):
    def body(total, x):
        return total + jax.grad(loss)(w, x), None
    return lax.scan(body, jnp.zeros_like(w), xs=xs)[0]

def unrolled(w, xs):
    def body(h, x):
        h = jnp.tanh(h @ w + x)
        return h, jnp.mean(h**2)
    return jnp.mean(lax.scan(body, jnp.zeros(xs.shape[1:]), xs)[1])

@split
def recurrent(w, xs):
    return jax.value_and_grad(unrolled)(w, xs=xs)

@split
def written_out(w, xs):
    return jax.grad(lambda w: unrolled(w, xs))(w)

@split
def closed_over(w, xs):
    def mean(w):
        return 2 * unrolled(w, xs), w.sum()
    gradients = jax.value_and_grad(mean, has_aux=True)
    return gradients(w)

propagated_inputs = recurrent_inputs = written_out_inputs = closed_over_inputs = lambda: inputs
helped_inputs = helped_beside_inputs = apart_inputs = twice_inputs = assigned_inputs = outside_inputs = lambda: inputs
inputs = inline_inputs = pair_inputs = checked_inputs = shared_inputs = (
    jnp.ones((64, 64)), jnp.arange(8. * 64 * 64).reshape(8, 64, 64) / 1e5
)
"""


@pytest.mark.skipif(not hasattr(jax.lax, "pcast"), reason="this JAX casts by another function")
@pytest.mark.parametrize(
    ("function", "line"),
    sampled(
        [
            ("inline", "total = lax.psum(total, 'dp')"),
            ("pair", "total = lax.pmean(total, 'dp')"),
            ("apart", "(total, n) = lax.pmean((total, n), 'dp')"),
            ("helped", "total = lax.pmean(total, 'dp')"),
            ("helped_beside", "total = lax.pmean(total, 'dp')"),
            ("checked", "total = lax.psum(total, axis_name='dp')"),
            ("shared", "total = lax.psum(total, 'dp')"),
            ("twice", ""),
            ("outside", "w = jax.tree.map(lambda leaf: lax.pcast(leaf, 'dp', to='varying'), w)"),
            ("assigned", "stage = jax.tree.map(lambda leaf: lax.pcast(leaf, 'dp', to='varying'), stage)"),
            ("propagated", "lambda xs: lax.pmean(lax.scan(body, jnp.zeros_like(w), xs=xs), 'dp')"),
            ("recurrent", "lambda w, xs: lax.pmean(jax.value_and_grad(unrolled)(w, xs=xs), 'dp')"),
            ("written_out", "(P(), P(None, 'dp')), out_specs=P(), check_vma=False)(w, xs)"),
            ("closed_over", "lambda w, xs: lax.pmean(gradients(w, xs=xs), 'dp')"),
        ],
        ("inline", "closed_over"),
        1,
    ),
)
def test_one_sum_is_left(function: str, line: str, tmp_path: Path) -> None:
    found = tried_in(tmp_path, SCRIPT, "SS07", function)
    fix = next(fix for fix in found.fixes if fix.helps)
    assert fix.experiment is not None
    assert "elsewhere" not in fix.title
    assert any(line in edit.text for edit in fix.edits)
    assert fix.experiment.values in ("equal", "close")
    before, after = (
        sum(count for _, count in side.collectives) for side in (fix.experiment.before, fix.experiment.after)
    )
    assert before - after >= 7
