"""`shardscope targets`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Shardscope


def test_list_and_figures(shardscope: Shardscope) -> None:
    done = shardscope("targets")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("cpu        yes, with jax")
    assert any("--target tpu:v5p:4x4x4" in line for line in lines)
    done = shardscope("targets", "--chips")
    assert done.returncode == 0
    figures = [" ".join(line.split()) for line in done.stdout.decode().splitlines()]
    assert any(line.startswith("hop latency 1 µs") for line in figures)
    assert any(line.startswith("flops 989 TFLOP/s NVIDIA H100") for line in figures)
    assert sum(line.startswith("ring ll call") for line in figures) == 1
    assert shardscope("targets", "--python", "/no/such/python").returncode == 2


@pytest.mark.once
def test_several_targets_side_by_side(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "mesh = jax.make_mesh((jax.device_count(),), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n"
        "@jax.jit\n"
        "def fn(a):\n"
        "    return a.sum()\n"
        "fn_inputs = jax.ShapeDtypeStruct((64,), 'float32', sharding=jax.NamedSharding(mesh, jax.P('x')))\n"
    )
    arguments = ("run", "script.py:fn", "--target", "cpu:4", "--target", "cpu:2", "--no-live", "--save", "kept.cap")
    done = shardscope(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.decode().splitlines()
    (row,) = [line for line in lines if "line 5 fn" in line]
    assert row.count("all-reduce") == 2
    assert sorted(path.name for path in tmp_path.glob("*.cap")) == ["kept.cpu-2.cap", "kept.cpu-4.cap"]
    document = json.loads(shardscope(*arguments, "--format", "json").stdout)
    assert document["targets"] == ["cpu:4", "cpu:2"]
    assert [report["subject"]["device_count"] for report in document["reports"]] == [4, 2]


def test_one_of_several_fails(shardscope: Shardscope) -> None:
    done = shardscope("run", "psum", "--target", "cpu", "--target", "toaster", "--no-live")
    assert done.returncode == 2
    assert "targets are cpu" in done.stdout.decode()
    assert "psum.py" in done.stdout.decode()
