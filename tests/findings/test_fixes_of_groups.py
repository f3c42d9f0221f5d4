"""Fixes of findings that several collectives share: each says for how many of them it is."""

from __future__ import annotations

import re
from pathlib import Path

from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report

PROGRAM = """\
import jax, jax.numpy as jnp
from jax.lax import with_sharding_constraint
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
batch, swapped = (NamedSharding(mesh, spec) for spec in (P("data", "model"), P("model", "data")))

def step(small, largest):
    small = with_sharding_constraint(jnp.tanh(small), swapped)
    return jnp.sin(small), jnp.sin(largest)

step = jax.jit(step, out_shardings=(None, swapped))
inputs = tuple(jax.ShapeDtypeStruct((n, n), jnp.float32, sharding=batch) for n in (8, 128))
"""


def permutes(report: Report) -> list[int]:
    """The elements of each permute in the text that XLA prints."""
    stage = report.capture.stage("hlo")
    assert stage is not None
    found = re.findall(r"= f32\[(\d+),(\d+)\]\S* collective-permute\(", stage.source.text())
    return sorted(int(rows) * int(columns) for rows, columns in found)


def test_a_fix_says_for_how_many_it_is(tmp_path: Path) -> None:
    """The constraint costs the small permute alone: the program without it still has the large one."""
    reports = []
    for text in (PROGRAM, PROGRAM.replace("with_sharding_constraint(jnp.tanh(small), swapped)", "jnp.tanh(small)")):
        (tmp_path / "script.py").write_text(text)
        reports.append(inspect(last_capture(Request(f"{tmp_path / 'script.py'}:step", live=False, probe="none"))))
    before, after = map(permutes, reports)
    assert after == before[1:]
    assert before[0] < before[1]
    (found,) = (each for each in reports[0].findings if each.rule == "SS23" and each.subject == "collective-permute")
    (fix,) = (each for each in found.fixes if each.edits)
    sent = f"{4 * before[0]} B of {4 * sum(before) / 1024:.3g} KiB"
    assert fix.title.endswith(f"small), swapped) (for 1 of the 2, {sent} sent)")


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
