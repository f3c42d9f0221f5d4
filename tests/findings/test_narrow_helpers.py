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
