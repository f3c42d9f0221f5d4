"""A value that a helper sends in a wide type: it is narrowed where the helper is called for it."""

from __future__ import annotations

from pathlib import Path

from tests.findings.trying import tried_in

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType
mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))

def gather(x, axis, dim):
    return lax.all_gather(x, axis, axis=dim, tiled=True)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("d"), P(None, "d"), P("d")), out_specs=P("d"), check_vma=False)
def step(w, v, x):
    scale = gather(v, "d", 1)
    wide = jnp.bfloat16(gather(w, "d", 0))
    return (jnp.bfloat16(x) @ wide) * scale.sum()

step_inputs = (jnp.ones((512, 256)) / 16, jnp.ones((4, 64)), jnp.ones((64, 512)) / 16)
"""


def test_the_call_of_a_helper_is_narrowed_and_no_other_one(tmp_path: Path) -> None:
    found = tried_in(tmp_path, SCRIPT, "SS10")
    first = found.fixes[0]
    assert first.helps
    assert [edit.text for edit in first.edits] == ["(", ").astype(jnp.bfloat16)"]
    assert {SCRIPT.splitlines()[edit.line - 1].strip() for edit in first.edits} == {
        'wide = jnp.bfloat16(gather(w, "d", 0))'
    }
    assert first.experiment is not None
    assert first.experiment.values in ("equal", "close")
    assert (first.experiment.bytes_saved or 0) == 7 * 64 * 256 * 2
    assert any("1 other call of gather" in fix.title for fix in found.fixes[1:])


MEANS = """
from functools import partial
import jax, jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType
mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))

def mean(grads, wire):
    def of(g):
        return lax.pmean(g, "d").astype(wire).astype(g.dtype)
    return jax.tree.map(of, grads)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("d")), out_specs=P(), check_vma=False)
def step(w, x):
    grads = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w["in"]) @ w["out"]))(w)
    return jax.tree.map(lambda p, g: p - g, w, mean(grads, jnp.bfloat16))

step_inputs = ({"in": jnp.ones((512, 256)) / 16, "out": jnp.ones((256, 64)) / 16}, jnp.ones((64, 512)) / 16)
"""


def test_means_that_are_rounded_are_sent_so(tmp_path: Path) -> None:
    """Each summand is rounded then, and the results are as near as those of that type are."""
    first = tried_in(tmp_path, MEANS, "SS10").fixes[0]
    assert first.helps
    assert first.experiment is not None
    assert first.experiment.values in ("equal", "close")
    assert (first.experiment.bytes_saved or 0) == 2 * 7 * (512 * 256 + 256 * 64) * 2 // 8
