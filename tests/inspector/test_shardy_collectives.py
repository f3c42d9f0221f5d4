"""Shardy's own collectives, as XLA's dumps have them: groups by numpy, one device's parts by JAX."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect

SHAPE = (16, 64)
DEVICES = np.arange(8).reshape(4, 2)

TEXT = """
module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func @main(%arg0: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [BEFORE]>}) -> tensor<16x64xf32> {
    %0 = sdy.OPERATION %arg0 out_sharding=<@mesh, [AFTER]> : tensor<16x64xf32>
    return %0 : tensor<16x64xf32>
  }
}
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="older versions make abstract meshes otherwise")
@pytest.mark.parametrize(
    ("operation", "kind", "before", "after", "axes"),
    [
        ('all_gather [{"x"}, {}]', "all-gather", P("x", "y"), P(None, "y"), "x"),
        ('all_gather [{"y"}, {}]', "all-gather", P(("x", "y"), None), P("x", None), "y"),
        ('all_reduce {"y"}', "all-reduce", P("x", None), P("x", None), "y"),
        ('reduce_scatter [{}, {"y"}]', "reduce-scatter", P("x", None), P("x", "y"), "y"),
        ('all_to_all [{"x"}: 0->1]', "all-to-all", P("x", None), P(None, "x"), "x"),
        ("collective_permute", "collective-permute", P("x", "y"), P("y", "x"), None),
    ],
)
def test_groups_and_parts(tmp_path: Path, operation: str, kind: str, before: P, after: P, axes: str | None) -> None:
    path = tmp_path / "module.mlir"
    text = TEXT.replace("OPERATION", operation).replace("BEFORE", spelled(before)).replace("AFTER", spelled(after))
    path.write_text(text.lstrip())
    (found,) = inspect(load(str(path))).collectives
    assert found.kind == kind
    assert sorted(found.groups) == ([] if axes is None else sorted(rows(axes)))
    mesh = AbstractMesh((4, 2), ("x", "y"))
    assert found.result_types[0].dims == NamedSharding(mesh, after).shard_shape(SHAPE)
    if axes is not None:
        assert found.operand_types[0].dims == NamedSharding(mesh, before).shard_shape(SHAPE)


def rows(axes: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, row)) for row in (DEVICES.T if axes == "x" else DEVICES)]


def spelled(spec: P) -> str:
    entries = [() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in spec]
    return ", ".join("{" + ", ".join(f'"{axis}"' for axis in entry) + "}" for entry in entries)


def test_axes_of_another_mesh_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    wrong = TEXT.replace("OPERATION", 'all_reduce {"z"}').replace("BEFORE", "{}, {}").replace("AFTER", '{"z"}, {}')
    path.write_text(wrong.lstrip())
    (found,) = inspect(load(str(path))).collectives
    assert (found.groups, found.bytes_out) == ((), None)


MHLO = """
module @jit_f attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<16x4xf32> {
    %0 = "mhlo.all_gather"(%arg0) {all_gather_dim = 0 : i64,
        channel_handle = #mhlo.channel_handle<handle = 1, type = 0>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<16x4xf32>
    return %0 : tensor<16x4xf32>
  }
}
"""


def test_mhlo_is_read_as_stablehlo(tmp_path: Path) -> None:
    def listed(text: str) -> list[tuple[object, ...]]:
        path = tmp_path / "module.mlir"
        path.write_text(text.lstrip())
        return [(each.kind, each.groups, each.bytes_out) for each in inspect(load(str(path))).collectives]

    assert listed(MHLO) == listed(MHLO.replace('"mhlo.', '"stablehlo.').replace("#mhlo.", "#stablehlo."))
    assert listed(MHLO) == [("all-gather", ((0, 1),), 16 * 4 * 4)]
