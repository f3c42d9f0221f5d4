"""Sums of sums in combined all-reduces: one finding of those that are combined."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, capture, last_capture
from shardscope.inspector.pipeline import suspected as inspect

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
    assert (found.saved_bytes or 0) > sent[frozenset("x")] + sent[frozenset("y")] - sent[frozenset("xy")]


IMPLICIT = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
sharding = lambda *spec: NamedSharding(mesh, P(*spec))
shardings = dict(in_shardings=sharding("x", "y"), out_shardings=sharding())
once = jax.jit(lambda a: jnp.sin(a).sum((0, 1)), **shardings)
twice = jax.jit(lambda a: jnp.sin(a).sum(1).sum(0), **shardings)
mapped = jax.jit(
    lambda a: jax.shard_map(
        lambda a: lax.psum(jnp.sin(a).sum((0, 1)), ("x", "y")), mesh=mesh, in_specs=P("x", "y"), out_specs=P()
    )(a)
)
once_inputs = twice_inputs = mapped_inputs = (jnp.ones((16, 8, 128)),)
"""


def test_the_partitioner_sums_over_one_axis_after_the_other_whatever_is_written(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(IMPLICIT)
    sums = {}
    for name in ("once", "twice", "mapped"):
        report = inspect(last_capture(Request(f"{tmp_path / 'sums.py'}:{name}", live=False)))
        sums[name] = len([each for each in report.collectives if (each.stage, each.kind) == ("hlo", "all-reduce")])
        assert not [each for each in report.findings if each.rule == "SS28"]
    assert sums == {"once": 2, "twice": 2, "mapped": 1}
