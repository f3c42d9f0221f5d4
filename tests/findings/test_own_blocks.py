"""Fixes of gathers of which each device keeps one block, and of permutations with gaps: run, and compared."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect

from tests.findings.trying import verified

PROGRAM = """\
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
def new_dimension(sizes):
    everyone = lax.all_gather(sizes * 2, "x", axis=1)
    return lax.dynamic_slice_in_dim(everyone, lax.axis_index("x") * 2, 2, axis=0)

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
def chains(x):
    return lax.ppermute(x, "x", [(0, 1), (1, 2)])

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def rows(x):
    everyone = lax.all_gather(x, "x", tiled=True)
    start = (lax.axis_index("x") * len(x) + OFFSET) % len(everyone)
    return x * lax.dynamic_slice_in_dim(everyone, start, 1)

rows_inputs = (jnp.arange(32.0).reshape(16, 2),)
new_dimension_inputs = (jnp.arange(32 * 3, dtype=jnp.int32).reshape(32, 3),)
chains_inputs = (jnp.arange(8),)
"""


def test_a_gather_that_adds_a_dimension(tmp_path: Path) -> None:
    """The all-to-all in its place gives the same numbers, when the program is run with it."""
    (tmp_path / "script.py").write_text(PROGRAM)
    request = Request(f"{tmp_path / 'script.py'}:new_dimension", probe="none", fingerprints=True)
    tried = verified(inspect(last_capture(request)), request, inspect)
    (found,) = (each for each in tried.findings if each.rule == "SS02")
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment


@pytest.mark.parametrize(("offset", "is_of_others"), [(0, False), (3, False), (4, True), (-1, True), (9, True)])
def test_rows_of_other_devices_are_no_own_block(tmp_path: Path, offset: int, is_of_others: bool) -> None:
    """Each of four devices holds four rows, and takes one."""
    (tmp_path / "script.py").write_text(PROGRAM.replace("OFFSET", str(offset)))
    report = inspect(last_capture(Request(f"{tmp_path / 'script.py'}:rows", probe="none", live=False)))
    (found,) = (each for each in report.findings if each.rule == "SS02")
    assert ("parts of others" in found.message, "ppermute" in found.fixes[0].title) == (is_of_others, is_of_others)


def test_what_is_added_to_a_permutation_makes_one_ring(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM)
    report = inspect(last_capture(Request(f"{tmp_path / 'script.py'}:chains", probe="none", live=False)))
    (found,) = (each for each in report.findings if each.rule == "SS19")
    assert "to devices 0, 3 along x: they receive" in found.message
    match = re.match(r"add (.*) to (\[.*?\]);", found.fixes[0].title)
    assert match is not None
    following = dict((*ast.literal_eval(f"[{match[1]}]"), *ast.literal_eval(match[2])))
    device, visited = 0, []
    while device not in visited:
        visited.append(device)
        device = following[device]
    assert sorted(visited) == [0, 1, 2, 3]
