"""Trials of changes: what a script compiles besides is compiled once, and what is not wanted is not run."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.capture.warm import WARMTH
from shardscope.inspector.experiments.edited import captured_with
from shardscope.inspector.experiments.values import for_numbers
from shardscope.inspector.ir.program import Program
from shardscope.inspector.report import Edit

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
jax.config.update("jax_compilation_cache_dir", {folder!r})
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
w = jax.device_put(jnp.tanh(jnp.arange(64.0).reshape(8, 8)) @ jnp.ones((8, 8)), NamedSharding(mesh, P("x")))
fn = jax.jit(lambda w: w.sum(0))
fn(w)
"""


@pytest.fixture
def script(tmp_path: Path) -> Request:
    (tmp_path / "script.py").write_text(SCRIPT.format(folder=str(tmp_path / "users")))
    return Request(f"{tmp_path / 'script.py'}:fn", devices=4)


def test_what_a_script_compiles_besides_is_compiled_once(script: Request, tmp_path: Path) -> None:
    plain, first = list(capture(script))[-1], list(capture(for_numbers(script)))[-1]
    kept = {path.name: path.stat().st_mtime_ns for path in WARMTH.compiled.path.iterdir()}
    second = list(capture(for_numbers(script)))[-1]
    assert kept
    assert {path.name: path.stat().st_mtime_ns for path in WARMTH.compiled.path.iterdir()} == kept
    for one in (first, second):
        assert one.failure is None
        assert one.execution is not None
        assert plain.execution is not None
        assert [each.digest for each in one.execution.outputs] == [each.digest for each in plain.execution.outputs]
        assert {each.name: each.source.data for each in one.stages if each.name.startswith("hlo")} == {
            each.name: each.source.data for each in plain.stages if each.name.startswith("hlo")
        }
    assert not (tmp_path / "users").exists(), "the user's own cache is left alone"


@pytest.mark.parametrize("is_wanted", [True, False])
def test_what_is_not_wanted_is_not_run(script: Request, *, is_wanted: bool) -> None:
    program = Program(list(capture(script))[-1])
    lines = SCRIPT.splitlines()
    line = next(number for number, text in enumerate(lines) if "w.sum(0)" in text)
    column = lines[line].index("0)")
    edit = Edit(script.function.partition(":")[0], line + 1, column, line + 1, column + 1, "1")
    seen: list[Capture] = []

    def look(compiled: Capture) -> bool:
        seen.append(compiled)
        return is_wanted

    changed = captured_with(program, for_numbers(script), [edit], look)
    assert changed is not None
    assert changed.failure is None
    assert changed.complete
    assert [each.stage("hlo") is not None and each.memory is not None for each in seen] == [True]
    assert (changed.execution is not None) == is_wanted
