"""A second mesh with an axis of the same name changes no finding: axes belong to their mesh."""

from __future__ import annotations

import textwrap
from pathlib import Path

from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Finding

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

line = Mesh(np.array(jax.devices()[:4]), ("i",))

@partial(jax.shard_map, mesh=line, in_specs=P("i"), out_specs=(P("i"), P("i"), P(), P("i")), check_vma=False)
def fn(x):
    missing = lax.dynamic_slice_in_dim(lax.psum(x, "i"), lax.axis_index("i") * 2, 2)
    shifted = lax.ppermute(x, "i", [(0, 1), (1, 2)])
    extra = lax.psum(jnp.sum(lax.psum(x * x, "i")), "i")
    gathered = jnp.sum(lax.all_gather(x, "i"), axis=0)
    return missing, shifted, extra, gathered

inputs = (np.ones((32, 8), "float32"),)
"""

SECOND = 'square = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("i", "j"))'


def findings(tmp_path: Path, text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    *_, final = capture(Request(f"{script}:fn", only_trace=True, devices=4))
    assert final.failure is None, final.failure

    def told(found: Finding) -> tuple[str, str, tuple[str, ...]]:
        return found.rule, found.message, tuple(fix.title for fix in found.fixes)

    return list(map(told, inspect(final).findings))


def test_an_unused_mesh_changes_no_finding(tmp_path: Path) -> None:
    alone = findings(tmp_path, PROGRAM)
    assert {rule for rule, _, _ in alone} >= {"SS01", "SS04", "SS19", "SS22"}
    assert findings(tmp_path, PROGRAM + SECOND) == alone
    assert [(r, m) for r, m, _ in findings(tmp_path, PROGRAM.replace("\nline", f"\n{SECOND}\nline"))] == [
        (r, m) for r, m, _ in alone
    ]
