"""Operands of one reduction: one finding for all of them."""

from __future__ import annotations

from pathlib import Path

from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect

OF_A_TREE = """\
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def mean_of(tree):
    return lax.pmean(tree, "x")

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)
def fn(state, x):
    doubled = {name: value * 2 for name, value in state.items()}
    return mean_of({**doubled, "x": x.sum()}), mean_of(doubled["a"] + 1)

inputs = ({name: jnp.ones(8) for name in "abcdefgh"}, jnp.ones(8))
"""


def test_operands_of_one_reduction_are_one_finding(tmp_path: Path) -> None:
    """The sums of the lowered program are those of the tree's leaves, one of which varies, and one of another call."""
    (tmp_path / "script.py").write_text(OF_A_TREE)
    report = inspect(last_capture(Request(f"{tmp_path / 'script.py'}:fn", live=False, probe="none")))
    stage = report.capture.stage("stablehlo")
    assert stage is not None
    reduced = stage.source.text().count('"stablehlo.all_reduce"(')
    whole, single = [each for each in report.findings if each.rule == "SS04"]
    assert whole.message.startswith(f"all devices along x hold the same {reduced - 2} values: ")
    assert single.message.startswith("all devices along x hold the same value: ")
    assert whole.place.source.frame == single.place.source.frame
