"""The propagation step by step, and shardings drawn."""

from __future__ import annotations

import pytest
from shardscope.inspector.dataflow.mlir import Node
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.sharding_spellings import from_spec
from shardscope.inspector.render.sharding_grid import grid_lines
from shardscope.inspector.shardings.recorded import sharding_at
from shardscope.inspector.shardings.table import propagated
from shardscope.inspector.shardings.why import BEFORE, Replay
from shardscope.parsers.sharding_syntax.jax_arrays import parse_spec
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax

from tests.conftest import SampleCapture

MESH = MeshSyntax((("data", 4), ("model", 2)))


@pytest.mark.parametrize("function", ["predict:predict", "transformer:train_step", "constraint:open_columns"])
def test_each_step_adds_what_it_says(function: str, sample: SampleCapture) -> None:
    """From nothing but what was asked to the end, every step adds its axis to its targets and to nothing else."""
    _, flow = propagated(Program(sample(function)))
    assert flow is not None
    replay = Replay(flow)
    nodes = {node for step in replay.moves.values() for move in step for node in move.targets}
    before = BEFORE
    for step in replay.steps[:40]:
        touched = {node for move in replay.moves[step] for node in move.targets}
        for node in nodes:
            changed = replay.after(node, step) != replay.after(node, before)
            assert not changed or node in touched
        before = step
    for node in nodes:
        final, last = sharding_at(flow, node), replay.after(node, replay.steps[-1])
        assert final is not None
        assert last is not None
        assert [dim.axes for dim in last.dims] == [dim.axes for dim in final.dims]


def test_before_the_first_step(sample: SampleCapture) -> None:
    _, flow = propagated(Program(sample("predict:predict")))
    assert flow is not None
    replay = Replay(flow)
    asked, found = replay.after(Node("argument", -1, 0), BEFORE), replay.after(Node("argument", -1, 2), BEFORE)
    assert asked is not None
    assert found is not None
    assert [len(dim.axes) for dim in asked.dims] == [1, 0]
    assert [len(dim.axes) for dim in found.dims] == [0, 0]


@pytest.mark.parametrize(
    ("spec", "shape", "expected"),
    [
        ("P('data', 'model')", (256, 16), ["dim 1: 16/2", "│ 0 │ 1 │  dim 0: 256/4", "│ 6 │ 7 │"]),
        ("P(None, 'model')", (3, 4), ["│ 0 2 4 6 │ 1 3 5 7 │", "unsharded: dim 0: 3"]),
        ("P('data')", (8,), ["dim 0: 8/4", "│ 0 1 │ 2 3 │ 4 5 │ 6 7 │"]),
        ("P()", (), ["│ 0–7 │"]),
        ("P('model', None, 'data')", (2, 3, 8), ["dim 2: 8/4", "│ 1 │ 3 │ 5 │ 7 │", "unsharded: dim 1: 3"]),
    ],
)
def test_drawings(spec: str, shape: tuple[int, ...], expected: list[str]) -> None:
    lines = list(grid_lines(from_spec(parse_spec(spec), MESH, len(shape)), shape))
    for line in expected:
        assert line in lines


def test_a_drawing_of_three_dimensions_that_are_all_cut() -> None:
    mesh = MeshSyntax((("x", 2), ("y", 2), ("z", 2)))
    lines = list(grid_lines(from_spec(parse_spec("P('x', 'y', 'z')"), mesh, 3), (4, 4, 4), devices=range(10, 18)))
    assert lines[0] == "dim 0: part 0 of 2"
    assert "│ 10 │ 11 │  dim 1: 4/2" in lines
    assert "│ 16 │ 17 │" in lines


def test_a_drawing_is_no_wider_than_there_is_room() -> None:
    mesh = MeshSyntax((("x", 64),))
    lines = list(grid_lines(from_spec(parse_spec("P(None, 'x')"), mesh, 2), (4, 64), width=40))
    assert max(map(len, lines)) <= 60
    assert "the first" in lines[0]
