"""A program that the backend refuses: what was reached is reported, the partitioned module's collectives among it."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.collectives import collectives

_hlo = pytest.importorskip("jaxlib._hlo")

PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
def fn(q):
    q = jnp.tanh(q)
    return jax.ffi.ffi_call("no_such_kernel", jax.ShapeDtypeStruct(q.shape, q.dtype))(q) * 2
inputs = (jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=NamedSharding(mesh, P("data"))),)
"""


def test_collectives_of_the_partitioned_module(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    *_, final = capture(Request(f"{script}:fn"))
    assert final.failure is not None
    assert final.failure.phase == "compile"
    report = inspect(final)
    stage = final.stage("hlo-spmd")
    assert stage is not None
    module = _hlo.hlo_module_from_text(stage.source.text())
    printed = [each.to_string() for body in module.computations() for each in body.instructions()]
    listed = [each for each in report.collectives if each.stage == "hlo-spmd"]
    assert len(listed) == sum(" all-gather(" in text for text in printed) == 1
    assert [str(axis) for axis in listed[0].axes or ()] == ["data"]
    table = collectives(report)
    assert len(table.rows) == 1
    assert "after partitioning" in table.heading
    assert "no_such_kernel may communicate" in table.heading
