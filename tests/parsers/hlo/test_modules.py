"""The parts of a module around its instructions."""

from __future__ import annotations

import textwrap

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.source import Frame, Source

TEXT = """\
HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, \
entry_computation_layout={(f32[8]{0}, /*index=1*/f32[])->(f32[])}, \
frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=4]>}}, num_partitions=8

FileNames
1 "/a.py"
2 "/b.py"

FunctionNames
1 "<module>"
2 "f.<locals>.g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=11 column=4 end_column=6}
2 {file_name_id=2 function_name_id=2 line=3 end_line=3 column=0 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=9 parent_frame_id=77}


%offloaded (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}, execution_thread="sparsecore"

ENTRY %main.2 (a: f32[], b: (s32[], f32[2])) -> f32[] {
  %a = f32[] parameter(0)
  %b = (s32[], f32[2]{0}) parameter(1)
  ROOT %r = f32[] call(%a), to_apply=%offloaded, metadata={op_name="jit(f)" stack_frame_id=2}
}
"""


@pytest.fixture
def module() -> HloModule:
    return parse_module(Source("m.txt", TEXT.encode()))


def test_its_header(module: HloModule) -> None:
    assert module.name == "jit_f"
    assert module.attributes["num_partitions"] == "8"
    assert module.attributes["entry_computation_layout"] == "{(f32[8]{0}, f32[])->(f32[])}"
    assert module.attributes["frontend_attributes"] == '{xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=4]>}}'
    assert not module.problems


def test_its_computations(module: HloModule) -> None:
    assert [computation.name for computation in module.computations] == ["offloaded", "main.2"]
    assert module.entry is module.computations[1]
    assert module.computation("offloaded") is module.computations[0]
    assert module.computation("main") is None
    assert module.computations[0].attributes == {"execution_thread": '"sparsecore"'}
    span = module.computations[0].span
    assert module.source.text(span).startswith("%offloaded (p")
    assert module.source.text(span).endswith('}, execution_thread="sparsecore"')


def test_its_stack_frames(module: HloModule) -> None:
    (call,) = module.with_opcode({"call"})
    inner, outer = call.frames
    assert inner == Frame("/b.py", "f.<locals>.g", 3, 3, 0, 9)
    assert outer == Frame("/a.py", "<module>", 10, 11, 4, 6)
    assert module.frames(1) == (outer,)
    assert module.frames(0) == module.frames(99) == ()
    (unframed,) = parse_module(Source("x", TEXT.replace(" stack_frame_id=2", "").encode())).with_opcode({"call"})
    assert (unframed.metadata is not None, unframed.frames) == (True, ())
    # A frame whose location is missing is there, but nowhere.
    assert [frame.line for frame in module.frames(3)] == [0]


def test_its_stack_frames_in_other_layouts(module: HloModule) -> None:
    for text in (TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "  \n"), textwrap.indent(TEXT, "\t"), f"see:\n{TEXT}"):
        (call,) = parse_module(Source("x", text.encode())).with_opcode({"call"})
        assert call.frames == module.frames(2)


def test_an_instruction_by_its_place(module: HloModule) -> None:
    offset = TEXT.index("to_apply")
    assert module.instruction_at(offset) is module.entry.instruction("r")
    assert module.instruction_at(0) is None
    assert module.instruction_at(TEXT.index("ENTRY")) is None
    assert module.instruction_at(len(TEXT)) is None


def test_counts(module: HloModule) -> None:
    assert module.opcode_counts() == {"parameter": 3, "call": 1}
    assert module.rows()[-1] == ("r", "f32[]", "call")


@pytest.mark.parametrize("text", ["", "  \n", "{}", '{"a": 1}', "module @jit_f {\n}\n", "\x00\xff", "HloModule"])
def test_what_is_not_hlo(text: str) -> None:
    with pytest.raises(ParseError, match="this is not the text of an HLO module"):
        parse_module(Source("x", text.encode("latin-1")))


def test_computations_without_a_module() -> None:
    module = parse_module(Source("x", TEXT[TEXT.index("%offloaded") :].encode()))
    assert module.name == ""
    assert [computation.name for computation in module.computations] == ["offloaded", "main.2"]
    assert not module.problems


def test_a_frame_that_calls_itself_ends() -> None:
    tables = "StackFrames\n1 {file_location_id=1 parent_frame_id=3}\n2 {file_location_id=1 parent_frame_id=2}\n"
    module = parse_module(Source("x", f"HloModule m\n\n{tables}\n".encode()))
    assert len(module.frames(1)) == 2
