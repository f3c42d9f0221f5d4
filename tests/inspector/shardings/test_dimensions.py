"""Dimensions of an operation's values, and the use that it makes of them: a program in which each is plain to see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardscope.inspector.capture.model import Stage
from shardscope.inspector.dataflow.mlir import Dataflow, Node, dataflow_of
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.shardings.sharded_dimensions import (
    ACROSS,
    DimensionUse,
    dimensions_of,
    dtype_of,
    floats_among,
    have_same_axes,
    is_whole,
    local_size,
    moves_whole_numbers,
    of_its_dtype,
    placed_at,
    wanted_by,
    with_axes,
)
from shardscope.parsers.source import Source

TEXT = """\
module @m {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(
    %a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<6x10xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %c: tensor<?x4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %d: tensor<8xi1>,
    %e: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>},
    %f: tensor<4xf32> {sdy.sharding = #sdy.sharding<@nowhere, [{"x"}]>}
  ) -> (tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>,
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=10, k=6} reduction={k}>
    } : (tensor<8x6xf32>, tensor<6x10xi32>) -> tensor<8x10xf32>
    %1 = stablehlo.reshape %a {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>,
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=6}>
    } : (tensor<8x6xf32>) -> tensor<48xf32>
    %2 = stablehlo.reshape %e {
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>,
      sdy.sharding_rule = #sdy.op_sharding_rule<([ij])->([i, j]) {i=4, j=4}>
    } : (tensor<16xf32>) -> tensor<4x4xf32>
    %3 = stablehlo.custom_call @sorted(%b) {
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=6, j=10} need_replication={i} permutation={j}>
    } : (tensor<6x10xi32>) -> tensor<6x10xi32>
    %4 = stablehlo.slice %b [0:6, 0:10] {
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=6, j=10}>
    } : (tensor<6x10xi32>) -> tensor<6x10xi32>
    %5 = stablehlo.custom_call @anything(%d) : (tensor<8xi1>) -> tensor<8xi1>
    %6 = sdy.sharding_constraint %0 <@mesh, [{}, {"y"}]> : tensor<8x10xf32>
    %7 = sdy.manual_computation(%a, %d) in_shardings=[<@mesh, [{"y"}, {}]>, <@mesh, [{"x"}]>]
        out_shardings=[<@mesh, [{"y"}, {}]>] manual_axes={"x", "y"} (%p: tensor<4x6xf32>, %q: tensor<2xi1>) {
      sdy.return %p : tensor<4x6xf32>
    } : (tensor<8x6xf32>, tensor<8xi1>) -> tensor<8x6xf32>
    return %6 : tensor<8x10xf32>
  }
}
"""
DOT, MERGE, SPLIT, PERMUTED, SLICE, UNKNOWN, CONSTRAINT, SHARD_MAP = range(8)
A, B, C, D, E, F = (Node("argument", -1, number) for number in range(6))
MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


@pytest.fixture(scope="module")
def flow() -> Dataflow:
    found = dataflow_of(ParsedStage(Stage("sdy", "mlir", Source("m", TEXT.encode()))))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("node", "shape", "spec"),
    [
        (A, (8, 6), PartitionSpec("x", "y")),
        (B, (6, 10), PartitionSpec("y")),
        (E, (16,), PartitionSpec(("y", "x"))),
        (Node("result", DOT, 0), (8, 10), PartitionSpec("x")),
    ],
)
def test_elements_on_each_device_are_those_of_jax(
    flow: Dataflow, node: Node, shape: tuple[int, ...], spec: PartitionSpec
) -> None:
    expected = 1
    for size in NamedSharding(MESH, spec).shard_shape(shape):
        expected *= size
    assert local_size(flow, node) == expected


@pytest.mark.parametrize("node", [C, D, F, Node("result", UNKNOWN, 0), Node("result", DOT, 1), Node("output", -1, 0)])
def test_elements_that_are_not_known(flow: Dataflow, node: Node) -> None:
    """Of a size, a sharding or a mesh that is not given, and of what is no value of an operation."""
    assert local_size(flow, node) is None


def test_dtypes(flow: Dataflow) -> None:
    assert [dtype_of(flow, node) for node in (A, B, C, D, E, F)] == ["f32", "i32", "bf16", "bool", "f32", "f32"]
    assert dtype_of(flow, Node("result", DOT, 0)) == "f32"
    assert dtype_of(flow, Node("result", DOT, 1)) is None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (DOT, ["> 0 i x", "> 1 k y", "> 0 k y", "> 1 j ", "< 0 i x", "< 1 j "]),
        (MERGE, ["> 0 i x", "> 1 j y", "< 0 i,j x"]),
        (SPLIT, ["> 0 i,j y,x", "< 0 i ", "< 1 j "]),
        (PERMUTED, ["> 0 i y", "> 1 j ", "< 0 i ", "< 1 j "]),
        (UNKNOWN, []),
        (CONSTRAINT, ["> 0  x", "> 1  ", "< 0  ", "< 1  y"]),
    ],
)
def test_dimensions_have_the_factors_of_the_rule_and_the_axes_of_the_sharding(
    flow: Dataflow, row: int, expected: list[str]
) -> None:
    side = {True: ">", False: "<"}
    found = [
        f"{side[each.is_operand]} {each.dim} {','.join(each.factors)} {','.join(axis.name for axis in each.axes)}"
        for each in dimensions_of(flow, row)
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("row", "reduced", "crossed", "merged", "kept", "keepable"),
    [
        # Of the operands' dimensions, then of the results': one letter each.
        (DOT, "nyynnn", "nnnnnn", "nnnnnn", "yyyynn", "nnnnnn"),
        # Whole blocks of rows stay; the columns are taken apart.
        (MERGE, "nnn", "nnn", "nyy", "ynn", "nnn"),
        # Eight blocks of two: rows of four are halved, so that both new dimensions would have to be split.
        (SPLIT, "nnn", "nnn", "nnn", "nnn", "ynn"),
        (PERMUTED, "nnnn", "yyyy", "nnnn", "yynn", "nnnn"),
        (SLICE, "nnnn", "yyyy", "nnnn", "yynn", "nnnn"),
    ],
)
def test_uses(flow: Dataflow, row: int, reduced: str, crossed: str, merged: str, kept: str, keepable: str) -> None:
    use, cuts = DimensionUse(flow, row), list(dimensions_of(flow, row))

    def letters(asked: Any) -> str:
        return "".join("y" if asked(cut) else "n" for cut in cuts)

    assert letters(use.reduces) == reduced
    assert letters(use.is_crossed) == crossed
    assert letters(use.merges) == merged
    assert letters(use.is_kept) == kept
    assert letters(use.could_keep) == keepable


def test_of_an_operation_without_a_rule_everything_is_possible(flow: Dataflow) -> None:
    (cut, *_) = dimensions_of(flow, DOT)
    use = DimensionUse(flow, UNKNOWN)
    assert use.rule is None
    assert use.is_crossed(cut)
    assert not any(asked(cut) for asked in (use.reduces, use.merges, use.is_kept, use.could_keep))


def test_operations_that_cross_parts_whatever_their_rule_says(flow: Dataflow) -> None:
    assert flow.rows[SLICE].name in ACROSS
    assert flow.rows[DOT].name not in ACROSS


def test_the_same_axes_in_another_order(flow: Dataflow) -> None:
    (both,) = (cut for cut in dimensions_of(flow, SPLIT) if cut.is_operand)
    (x, y, *_) = dimensions_of(flow, DOT)
    turned = type(both)(both.node, both.dim, both.factors, both.axes[::-1], True)
    assert have_same_axes(both, turned)
    assert have_same_axes(x, x)
    assert not have_same_axes(x, y)
    assert not have_same_axes(both, x)


def test_an_axis_is_along_one_dimension(flow: Dataflow) -> None:
    sharding = placed_at(flow, A)
    assert sharding is not None
    moved = with_axes(sharding, 1, sharding.dims[0].axes)
    assert [[axis.name for axis in dim.axes] for dim in moved.dims] == [[], ["x"]]
    assert [[axis.name for axis in dim.axes] for dim in with_axes(sharding, 0, ()).dims] == [[], ["y"]]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (DOT, []),
        (CONSTRAINT, [(Node("result", DOT, 0), (None, "y"))]),
        (SHARD_MAP, [(A, ("y", None)), (D, ("x",))]),
    ],
)
def test_requested_of_operands(flow: Dataflow, row: int, expected: list[tuple[Node, tuple[str | None, ...]]]) -> None:
    found = [
        (node, tuple(dim.axes[0].name if dim.axes else None for dim in own.dims))
        for node, own in wanted_by(flow, row)
        if own is not None
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("dtypes", "moved", "kept"),
    [
        # A collective of one of the dtypes takes all of its kind: floats are widened, integers as well.
        ("f32 i32 bf16 bool", "f32", "f32 bf16"),
        ("f32 i32 bf16 bool", "i32", "i32 bool"),
        ("f32 i32 bf16 bool", "i32 f32", "f32 i32 bf16 bool"),
        # None has a dtype of it: nothing can be told.
        ("f32 i32", "bf16", "f32 i32"),
        ("f32 ? i32", "f32", "f32 ?"),
    ],
)
def test_values_that_a_collective_can_move(monkeypatch: pytest.MonkeyPatch, dtypes: str, moved: str, kept: str) -> None:
    monkeypatch.setattr(
        "shardscope.inspector.shardings.sharded_dimensions.dtype_of", lambda _, node: None if node == "?" else node
    )
    collective: Any = SimpleNamespace(operand_types=[SimpleNamespace(dtype=each) for each in moved.split()])
    cuts: Any = [SimpleNamespace(node=each) for each in dtypes.split()]
    flow: Any = None
    assert [each.node for each in of_its_dtype(flow, collective, cuts)] == kept.split()
    assert [each.node for each in floats_among(flow, cuts)] == [
        each for each in dtypes.split() if each[0] not in "iu" and each != "bool"
    ]
    assert moves_whole_numbers(collective) == all(is_whole(each) for each in moved.split())
