"""Rows of a batch that are gathered for totals, or joined with others and split again: each device keeps its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected

from tests.findings.trying import verified
from tests.sweeps import sampled

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
mapped = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("d")), out_specs=P(), check_vma=False)

@jax.jit
@mapped
def accuracy(w, x):
    scores, labels = (lax.all_gather(each, "d", tiled=True) for each in (x @ w, jnp.int32(x[:, 0] * 9)))
    return (scores.argmax(-1) == labels).mean()

@jax.jit
@mapped
def normed(w, x):
    return jnp.linalg.norm(lax.all_gather(x @ w, "d", tiled=True))

@jax.jit
@mapped
def absolute(w, x):
    return jnp.linalg.norm(lax.all_gather(x[:, 0], "d", tiled=True), ord=1)

def totals(scores, seen):
    return {"loss": (jax.nn.logsumexp(scores, axis=-1) * seen).sum() / seen.sum(), "most": jnp.max(scores)}

@jax.jit
@mapped
def evaluated(w, x):
    scores = lax.all_gather(x @ w, "d", tiled=True)
    return totals(scores, lax.all_gather(x[:, 0], "d", tiled=True))

@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("d")), out_specs=P("d"))
def scaled(w, x):
    for _ in range(2):
        everyone = lax.all_gather(x @ w, "d", tiled=True)
        x = x + ((x @ w - everyone.mean(0)) / jnp.std(everyone, axis=0)) @ w.T
    return x

normalized = jax.jit(jax.grad(lambda w, x: jnp.mean(scaled(w, x) ** 2)))

@jax.jit
@mapped
def among_all(w, x):
    scores = lax.all_gather(x @ w, "d", tiled=True)
    return jnp.mean(jnp.sort(scores, axis=0) * jnp.arange(32.0)[:, None])

@jax.jit
def halves(w, x):
    v = jnp.tanh(jnp.concatenate([x, x * 2], axis=0) @ w)
    one, other = jnp.split(v, 2)
    return one - 3 * other

@jax.jit
def sliced(w, x):
    v = jnp.tanh(jnp.tile(x, (2, 1)) @ w) + jnp.concatenate([x[:, :1], 2 * x[:, :1]])
    return v[:len(x)] - 3 * v[len(x):]

@jax.jit
def beside(w, x):
    v = jnp.tanh(jnp.concatenate([x, x * 2], axis=0) @ w)
    one, other = jnp.split(v + jnp.roll(v, 1, axis=0), 2)
    return one - 3 * other

def accuracy_inputs():
    rows = jax.random.uniform(jax.random.key(1), (32, 16))
    return jax.random.normal(jax.random.key(0), (16, 10)), jax.device_put(rows, NamedSharding(mesh, P("d")))

normed_inputs = absolute_inputs = evaluated_inputs = normalized_inputs = among_all_inputs = accuracy_inputs
halves_inputs = sliced_inputs = beside_inputs = accuracy_inputs
"""

CASES = [
    ("accuracy", "SS22", "pmean each total", {"all-reduce d": 1}),
    ("evaluated", "SS22", "psum and pmax each total", {"all-reduce d": 1}),
    ("normalized", "SS22", "pmean each total", {"all-reduce d": 1}),
    ("normed", "SS22", "** 2", {"all-reduce d": 1}),
    ("absolute", "SS22", "", None),
    ("among_all", "SS22", "", None),
    ("halves", "SS23", "in turn", {}),
    ("sliced", "SS23", "in turn", {}),
    ("beside", "SS23", "", None),
]


@pytest.mark.parametrize(("function", "rule", "title", "left"), sampled(CASES, 2, 0))
def test_each_device_keeps_its_rows(
    function: str, rule: str, title: str, left: dict[str, int] | None, tmp_path: Path
) -> None:
    """Of rows that are sorted, or moved on, among all, no change is right."""
    script = tmp_path / "rows.py"
    script.write_text(SCRIPT)
    request = Request(f"{script}:{function}", probe="none", fingerprints=True)
    report = verified(suspected(last_capture(request)), request, suspected)
    fixes = [fix for found in report.findings if found.rule == rule for fix in found.fixes if fix.helps and fix.edits]
    if left is None:
        assert not [fix for fix in fixes if "in turn" in fix.title or "gathers of" in fix.title]
        return
    done = fixes[0].experiment
    assert title in fixes[0].title
    assert done is not None
    assert done.values in ("equal", "close")
    assert {name.split()[0] for name in dict(done.after.collectives)} == {name.split()[0] for name in left}
