"""Requested shardings of values that have meshes of their own, whose axes have the same names and other sizes."""

from __future__ import annotations

from pathlib import Path

from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def like(*mesh, shape=(8, 16)):
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:8]).reshape(mesh), ("a", "b")), P("a", "b"))
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)

@jax.jit
def fn(rows, columns):
    return rows.sum(1), columns.sum(0)

inputs = (like(8, 1), like(1, 8))
"""


def test_each_value_is_placed_as_its_own_mesh_places_it(tmp_path: Path) -> None:
    """JAX's `input_shardings` are the requested ones of both arguments, so that neither differs."""
    (tmp_path / "script.py").write_text(SCRIPT)
    final = last_capture(Request(f"{tmp_path / 'script.py'}:fn", live=False))
    assert final.failure is None, final.failure
    report = inspect(final)
    rows = {row.name: row for row in report.shardings if row.role == "argument"}
    assert {name: str(row.local_type) for name, row in rows.items()} == {"rows": "f32[1,16]", "columns": "f32[8,2]"}
    assert [rows[name].agrees for name in ("rows", "columns")] == [True, True]
