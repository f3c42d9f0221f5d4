"""Sums of sums in combined all-reduces: what SS28 saves is what the program with one sum sends less."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect

PROGRAM = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
mapped = lambda body: jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)
twice = mapped(lambda a, b: [lax.psum(lax.psum(jnp.sin(v), "x"), "y") for v in (a, b)])
once = mapped(lambda a, b: [lax.psum(jnp.cos(v), ("x", "y")) for v in (a, b)])
step = jax.jit(lambda a, b: (twice(a, b), once(a, b)))
step_inputs = (jnp.ones((16, 8)), jnp.ones((32, 8)))
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 does not combine these sums")
def test_one_finding_for_what_is_combined(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(PROGRAM)
    *_, captured = capture(Request(f"{tmp_path / 'sums.py'}:step", live=False))
    report = inspect(captured)
    sent = {
        frozenset(axis.name for axis in each.axes or ()): each.wire_bytes or 0
        for each in report.collectives
        if each.stage == "hlo" and len(each.result_types) == 2
    }
    assert set(sent) == {frozenset("x"), frozenset("y"), frozenset("xy")}
    (found,) = [each for each in report.findings if each.rule == "SS28"]
    assert found.saved_bytes == sent[frozenset("x")] + sent[frozenset("y")] - sent[frozenset("xy")]
