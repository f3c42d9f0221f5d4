"""Operations across a sharded dimension on TPUs: what is gathered for them is what is named."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report

LIBTPU = pytest.mark.skipif(find_spec("libtpu") is None, reason="no compiler for TPUs is installed")

PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
put = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P("x")))
sort, sort_inputs = jax.jit(lambda rows: jnp.sort(rows, axis=0)), (put(8192, 3),)
best, best_inputs = jax.jit(lambda rows: jax.lax.top_k(rows.T, 5)), (put(1024, 1024),)
tall, tall_inputs = jax.jit(lambda rows, to: jnp.linalg.qr(rows @ to)[0]), (put(1024, 64), put(64, 32))
layer = lambda x, w: (jnp.tanh(x @ w), None)
layers, layers_inputs = jax.jit(lambda ws, x: jax.lax.scan(layer, x, ws)[0]), (put(8, 64, 64), put(256, 64))
"""

GATHER = re.compile(r"= (\w+\[[\d,]+\])\S* all-gather(?:-start)?\(")


def inspected(tmp_path: Path, function: str, target: str = "tpu:v5p:2x2x2") -> Report:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    *_, final = capture(Request(f"{script}:{function}", target=target, live=False))
    assert final.complete, final.failure
    return inspect(final)


def gathered(report: Report) -> list[str]:
    """The results of gathers, as they stand in the compiled text."""
    stage = report.program.stage("hlo")
    assert stage is not None
    return sorted(GATHER.findall(stage.source.data.decode()))


@LIBTPU
def test_positions_are_sorted_with_values(tmp_path: Path) -> None:
    """The compiler sorts positions beside the rows, which the program knows nothing of: one fault, of both gathers."""
    report = inspected(tmp_path, "sort")
    assert gathered(report) == ["f32[8192,3]", "s32[8192,3]"]
    (found,) = [each for each in report.findings if each.rule == "SS15"]
    assert found.message == "sort all-gathers dimension 0 of rows, sharded over x"
    sent = [each.wire_bytes for each in report.collectives if each.stage == "hlo"]
    assert found.saved_bytes == sum(each or 0 for each in sent) == 2 * 7 * 8192 * 3 * 4 // 8


@LIBTPU
def test_the_best_of_each_shard_are_no_operand(tmp_path: Path) -> None:
    """Each device selects among its own rows, and the five of each are gathered: nothing is better."""
    report = inspected(tmp_path, "best")
    assert [int(each.partition("[")[2].split(",")[1]) for each in gathered(report)] == [5]
    assert [each.rule for each in report.findings if each.severity != "info"] == []


@pytest.mark.once
def test_weights_whose_layers_are_sharded_are_named(tmp_path: Path) -> None:
    """A scan takes one layer after the other: the argument is gathered, not what the partitioner makes of it."""
    report = inspected(tmp_path, "layers", "cpu")
    assert gathered(report) == ["f32[8,64,64]"]
    (found,) = [each for each in report.findings if each.rule == "SS15"]
    assert found.message == "dynamic_slice all-gathers dimension 0 of ws, sharded over x"


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5p:2x2x2", marks=LIBTPU)])
def test_a_tall_matrix_is_decomposed_as_a_whole(tmp_path: Path, target: str) -> None:
    """On all backends, whatever custom call or loop they have for it."""
    report = inspected(tmp_path, "tall", target)
    assert "f32[1024,32]" in gathered(report)
    (found,) = [each for each in report.findings if each.rule == "SS15"]
    assert found.message == "geqrf all-gathers dimension 0 of the dot_general result, sharded over x"
    (moved,) = [each for each in report.communication if each.strategy == "resharding" and each.kind == "all-gather"]
    assert moved.wire_bytes == 1024 * 32 * 4 * 7 // 8
