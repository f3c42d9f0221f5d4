"""Collectives that were flattened and written one behind the other, in the words of XLA's compiler for GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.collectives.context import AnalysisContext
from shardscope.inspector.collectives.hlo import hlo_collectives
from shardscope.inspector.collectives.users import parts_of
from shardscope.inspector.ir.program import Program
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect, links
from shardscope.inspector.report.links import Evidence
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.source import Source

TEXT = """\
HloModule jit_two, is_scheduled=true, num_partitions=8
FileNames
1 "two.py"
FunctionNames
1 "two"
FileLocations
1 {file_name_id=1 function_name_id=1 line=11 end_line=11 column=37 end_column=37}
2 {file_name_id=1 function_name_id=1 line=13 end_line=13 column=30 end_column=30}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%region (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

%joined (p0: f32[128], p1: f32[32], p2: f32[7]) -> f32[167] {
  %p0 = f32[128]{0} parameter(0)
  %p1 = f32[32]{0} parameter(1)
  %p2 = f32[7]{0} parameter(2)
  ROOT %concatenate = f32[167]{0} concatenate(%p0, %p1, %p2), dimensions={0}
}

%cut (p: f32[167]) -> f32[128] {
  %p = f32[167]{0} parameter(0)
  ROOT %slice = f32[128]{0} slice(%p), slice={[0:128]}
}

ENTRY %main (x: f32[16,8], y: f32[4,8], z: f32[7]) -> (f32[16,8], f32[4,8], f32[7]) {
  %x = f32[16,8]{1,0} parameter(0)
  %y = f32[4,8]{1,0} parameter(1)
  %z = f32[7]{0} parameter(2)
  %bitcast = f32[128]{0} bitcast(%x)
  %bitcast.1 = f32[32]{0} bitcast(%y)
  %joining = f32[167]{0} fusion(%bitcast, %bitcast.1, %z), kind=kLoop, calls=%joined
  %all-reduce-start = f32[167]{0} all-reduce-start(%joining), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, \
use_global_device_ids=true, to_apply=%region
  %all-reduce-done = f32[167]{0} all-reduce-done(%all-reduce-start)
  %cutting = f32[128]{0} fusion(%all-reduce-done), kind=kLoop, calls=%cut
  %slice.1 = f32[32]{0} slice(%all-reduce-done), slice={[128:160]}
  %slice.2 = f32[7]{0} slice(%all-reduce-done), slice={[160:167]}
  %bitcast.2 = f32[16,8]{1,0} bitcast(%cutting), metadata={op_name="jit(two)/shard_map/psum" stack_frame_id=1}
  %bitcast.3 = f32[4,8]{1,0} bitcast(%slice.1), metadata={op_name="jit(two)/transpose(jvp())/psum" stack_frame_id=2}
  %sine = f32[7]{0} sine(%slice.2), metadata={op_name="jit(two)/sin" stack_frame_id=2}
  ROOT %tuple = (f32[16,8]{1,0}, f32[4,8]{1,0}, f32[7]{0}) tuple(%bitcast.2, %bitcast.3, %sine)
}
"""


def module() -> HloModule:
    return parse_module(Source("two.hlo", TEXT.encode()))


def test_parts() -> None:
    (found,) = parts_of(module(), module().with_opcode({"all-reduce-start"})).values()
    assert [(str(part.type), part.source.line, part.op_name) for part in found] == [
        ("f32[7]", None, None),  # its use is no part of it
        ("f32[16,8]", 11, "jit(two)/shard_map/psum"),
        ("f32[4,8]", 13, "jit(two)/transpose(jvp())/psum"),
    ]


def test_what_is_whole_has_no_parts() -> None:
    text = TEXT.replace("%bitcast.3 = f32[4,8]{1,0} bitcast(%slice.1)", "%bitcast.3 = f32[4,8]{1,0} parameter(3)")
    alone = parse_module(Source("one.hlo", text.replace("slice(%all-reduce-done)", "slice(%joining)").encode()))
    assert parts_of(alone, alone.with_opcode({"all-reduce-start"})) == {}


def test_the_whole_comes_from_where_the_parts_do() -> None:
    (found,) = hlo_collectives("hlo", module(), AnalysisContext((), 8, differentiated=True))
    assert (found.kind, list(map(str, found.result_types)), len(found.parts)) == ("all-reduce", ["f32[167]"], 3)
    assert (found.origin, found.direction) == ("user", "unknown")  # one is of the backward pass, one is not
    assert (found.source.line, found.source.confidence) == (11, "name")


NAMELESS = """HloModule m, num_partitions=2
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}
ENTRY %main (a: f32[8], b: f32[8]) -> (f32[8], f32[8]) {
  %a = f32[8] parameter(0)
  %b = f32[8] parameter(1)
  %all-reduce = (f32[8], f32[8]) all-reduce(%a, %b), channel_id=1, replica_groups={{0,1}}, to_apply=%add
  %first = f32[8] get-tuple-element(%all-reduce), index=0
  %second = f32[8] get-tuple-element(%all-reduce), index=1
  %sin = f32[8] sine(%first), metadata={op_name="jit(f)/sin" source_file="/model.py" source_line=5}
  %copy = f32[8] copy(%second)
  %cos = f32[8] cosine(%copy), metadata={op_name="jit(f)/cos" source_file="/model.py" source_line=LINE}
  ROOT %both = (f32[8], f32[8]) tuple(%sin, %cos)
}
"""


@pytest.mark.parametrize(("line", "known"), [(5, 5), (9, None)])
def test_what_is_for_several_lines_is_of_none_of_them(tmp_path: Path, line: int, known: int | None) -> None:
    path = tmp_path / "module.hlo"
    path.write_text(NAMELESS.replace("LINE", str(line)))
    [collective] = inspect(load(str(path))).collectives
    assert collective.source.line == known


def test_pieces_of_a_vector_come_from_sums_of_their_names() -> None:
    """Of two sums as large as a piece, the partitioner's output has one with the piece's name."""
    sums = [(128, "jit(two)/other"), (128, "jit(two)/shard_map/psum"), (32, "jit(two)/transpose(jvp())/psum")]
    lines = [TEXT[: TEXT.index("%joined")], "ENTRY %main (x: f32[128], y: f32[128], z: f32[32]) -> f32[128] {"]
    for number, (size, name) in enumerate(sums):
        lines += [
            f"  %in.{number} = f32[{size}]{{0}} parameter({number})",
            f"  %sum.{number} = f32[{size}]{{0}} all-reduce(%in.{number}), channel_id={number + 1},"
            f' replica_groups={{{{0,1,2,3,4,5,6,7}}}}, to_apply=%region, metadata={{op_name="{name}"}}',
        ]
    texts = {"hlo-spmd": "\n".join([*lines, "}", ""]), "hlo": TEXT}
    stages = tuple(Stage(name, "hlo", Source(name, text.encode())) for name, text in texts.items())
    found = links(Program(Capture(stages=stages)))
    assert [(str(part.type), [(link.name, link.evidence) for link in part.links]) for part in found] == [
        ("f32[7]", []),
        ("f32[16,8]", [("sum.1", Evidence.NAME_AND_LINE)]),
        ("f32[4,8]", [("sum.2", Evidence.NAME_AND_LINE)]),
    ]
