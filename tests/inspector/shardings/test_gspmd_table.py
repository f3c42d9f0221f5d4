"""Without Shardy: what GSPMD's attributes say, against what its partitioner computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.placement import same
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import array_type
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.shardings import shardings as shardings_table
from shardscope.inspector.shardings.table import borders, values
from shardscope.parsers.hlo.types import leaves

PROGRAM = Path(__file__).parent / "programs" / "gspmd.py"


@pytest.fixture(scope="module")
def captured() -> Capture:
    *_, found = capture(Request(f"{PROGRAM}:predict", live=False))
    assert found.complete, found.failure
    if found.stage("sdy") is not None:
        pytest.skip("this JAX has nothing but Shardy")
    return found


def test_the_table_is_what_was_compiled(captured: Capture) -> None:
    rows = borders(Program(captured))
    assert [(row.role, row.name, row.requested, row.spec) for row in rows] == [
        ("argument", "x", "P('data', None)", "P('data', None)"),
        ("argument", "w1", "P(None, 'model')", "P(None, 'model')"),
        ("argument", "w2", None, "P('model', None)"),
        ("output", "result[0]", None, "P('data', None)"),
        ("output", "result[1]", None, "P()"),
        ("constraint", "sharding_constraint", "P('data', 'model')", "P('data', 'model')"),
    ]
    module = Program(captured).hlo("hlo-spmd")
    assert module is not None
    assert module.entry is not None
    assert module.entry.root is not None
    compiled = {int(each.literal or 0): each for each in module.entry.instructions if each.opcode == "parameter"}
    assert [str(row.local_type) for row in rows[:3]] == [str(array_type(compiled[n].type)) for n in range(3)]
    assert [row.local_type for row in rows[3:5]] == list(map(array_type, leaves(module.entry.root.type)))
    assert [row.spec for row in values(Program(captured)) if row.name == "tanh"] == ["P('data', 'model')"]


@pytest.mark.parametrize("stage", ["hlo-before", "stablehlo"])
def test_bare_texts_tell_the_devices(captured: Capture, stage: str, tmp_path: Path) -> None:
    """Nobody knows the mesh any more, but the parts lie on the same devices."""
    text = captured.stage(stage)
    assert text is not None
    path = tmp_path / "text"
    path.write_bytes(text.source.data)
    bare = Program(load(str(path)))
    there = {(row.role, row.type, row.value): row for row in borders(Program(captured))}
    compared = 0
    for row in borders(bare):
        known = there.get((row.role, row.type, row.value))
        if known is not None and known.sharding is not None and row.sharding is not None:
            assert same(known.sharding, row.sharding)
            assert known.local_type == row.local_type
            compared += 1
    assert compared >= 1
    assert "{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dims={replicated}}" in {row.spec for row in borders(bare)}
    assert inspect(bare).shardings == borders(bare)


WRITTEN = """module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x32xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> tensor<16x32xf32> {
    %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[1,8]<=[8]}"}
      : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
}
"""


def test_before_propagation_no_sharding_holds_yet(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(WRITTEN)
    report = inspect(Program(load(str(path))))
    assert [(row.role, str(row.local_type), row.agrees) for row in report.shardings] == [
        ("argument", "f32[2,32]", None),
        ("output", "None", None),
        ("constraint", "f32[16,4]", None),
    ]
    assert shardings_table(report).heading == "Shardings in StableHLO, before propagation"
