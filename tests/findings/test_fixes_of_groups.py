"""Fixes of findings that several collectives share: each says for how many of them it is."""

from __future__ import annotations

import re
from pathlib import Path

from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
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
