"""What is read from single instructions, spelled as XLA prints them."""

from __future__ import annotations

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import Computation, Instruction, Metadata, Operand, TupleShape, parse_module
from shardscope.parsers.sharding_syntax.gspmd import DimSharding, MeshSharding
from shardscope.parsers.sharding_syntax.replica_groups import IotaGroups, ListGroups, MeshGroups
from shardscope.parsers.source import Frame, Source

NOT_THERE = "there is no instruction or computation"


def body(*lines: str) -> Computation:
    """The computation with these instructions, which is the entry of a module."""
    rows = "".join(f"  {line}\n" for line in lines)
    module = parse_module(Source("text", f"HloModule m\n\nENTRY %main () -> f32[] {{\n{rows}}}\n".encode()))
    for problem in module.problems:  # what the lines refer to is not there
        name = module.source.data[problem.span.start : problem.span.end].decode()
        assert problem.message == f"{NOT_THERE} {name!r} here"
    return module.computations[0]


def only(line: str) -> Instruction:
    (instruction,) = body(line).instructions
    return instruction


ALL_REDUCE = (
    "ROOT %all-reduce.3 = (f32[8]{0:T(128)}, /*index=1*/bf16[]) all-reduce(%a, %b.1), channel_id=5, "
    "replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=%add, "
    'frontend_attributes={is_spmd_generated="true",_note="a, {b}=\\"c\\""}, '
    'metadata={op_name="jit(f)/transpose(jvp(layer=1, {2}))/psum" stack_frame_id=7}, '
    'backend_config={"config":{"emitter":"Ring{2}","n":[1,2]},"cycles":"12"}'
)


def test_the_head() -> None:
    found = only(ALL_REDUCE)
    assert (found.name, found.opcode, found.is_root) == ("all-reduce.3", "all-reduce", True)
    assert found.type_text == "(f32[8]{0:T(128)}, /*index=1*/bf16[])"
    assert isinstance(found.type, TupleShape)
    assert str(found.type) == "(f32[8]{0:T(128)}, bf16[])"
    assert found.text == ALL_REDUCE
    assert found.operands == ("a", "b.1")
    assert found.literal is None


def test_attributes_are_texts_by_key() -> None:
    found = only(ALL_REDUCE).attributes
    assert list(found) == [
        "channel_id",
        "replica_groups",
        "use_global_device_ids",
        "to_apply",
        "frontend_attributes",
        "metadata",
        "backend_config",
    ]
    assert found["channel_id"] == "5"
    assert found["to_apply"] == "%add"


def test_what_the_attributes_mean() -> None:
    found = only(ALL_REDUCE)
    assert found.replica_groups == ListGroups(((0, 2), (1, 3)))
    assert found.metadata == Metadata("jit(f)/transpose(jvp(layer=1, {2}))/psum", stack_frame_id=7)
    assert found.frontend_attributes == {"is_spmd_generated": "true", "_note": 'a, {b}="c"'}
    assert found.backend_config == {"config": {"emitter": "Ring{2}", "n": [1, 2]}, "cycles": "12"}
    assert found.called == ("add",)
    assert found.source_target_pairs is None
    assert found.sharding is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{}", ListGroups(())),
        ("[2,4]<=[8]", IotaGroups(2, 4, (8,), (0,))),
        ("[4,2]<=[2,4]T(1,0)", IotaGroups(4, 2, (2, 4), (1, 0))),
    ],
)
def test_groups_stop_at_the_next_attribute(value: str, expected: object) -> None:
    found = only(f"%x = f32[] all-reduce(%y), replica_groups={value}, to_apply=%add")
    assert found.replica_groups == expected
    assert found.attributes["to_apply"] == "%add"


def test_groups_of_a_mesh_have_commas_and_spaces_in_them() -> None:
    value = "mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y'}"
    found = only(f"%x = f32[] all-reduce(%y), replica_groups={value}, to_apply=%add")
    assert found.attributes == {"replica_groups": value, "to_apply": "%add"}
    assert isinstance(found.replica_groups, MeshGroups)
    assert found.replica_groups.devices(4) == ((0, 2), (1, 3))


def test_pairs() -> None:
    assert only("%x = f32[] collective-permute(%y), source_target_pairs={{0,1},{3,2}}").source_target_pairs == (
        (0, 1),
        (3, 2),
    )


def test_a_sharding() -> None:
    found = only("%x = f32[8]{0} parameter(0), sharding={mesh['x'=2], [{?}]}").sharding
    assert isinstance(found, MeshSharding)
    assert found.dims == (DimSharding((), is_open=True),)


def test_values_that_mean_nothing_are_parse_errors_at_their_place() -> None:
    found = only("%x = f32[] all-reduce(%y), replica_groups=[2,2]<=[5], sharding={devices=[2]}")
    with pytest.raises(ParseError, match=r"text:4:45: 2 groups of 2 do not divide an iota of \[5\]"):
        _ = found.replica_groups
    with pytest.raises(ParseError, match=r"text:4:78: unexpected '}'"):
        _ = found.sharding


@pytest.mark.parametrize(
    ("line", "operands", "literal"),
    [
        ("%x = f32[] constant(-inf)", (), "-inf"),
        ("%x = f32[2,2]{1,0} constant({ { 1, 2 }, {3, 4} })", (), "{ { 1, 2 }, {3, 4} }"),
        ("%x = c64[] constant((1, -2))", (), "(1, -2)"),
        ("%x = f32[] parameter(12)", (), "12"),
        ("%x = s32[4]{0} iota(), iota_dimension=0", (), None),
        ("%x = f32[] add(f32[] %a, f32[]{:T(8,128)(2,1)} %b)", ("a", "b"), None),
        ("x.1 = f32[] add(f32[] a, (f32[], (s32[], u32[])) b_2)", ("a", "b_2"), None),
        ("%x = (f32[]) tuple(%a, %b, %c, %d, %e, /*index=5*/%f)", ("a", "b", "c", "d", "e", "f"), None),
        ("%x = f32[] call(%loop#1, %loop), to_apply=%f", ("loop", "loop"), None),
    ],
)
def test_operands_and_literals(line: str, operands: tuple[str, ...], literal: str | None) -> None:
    found = only(line)
    assert found.operands == operands
    assert found.literal == literal


def test_elements_as_operands() -> None:
    found = only("%x = f32[] call(%loop#1, %loop, %loop#0#12), to_apply=%f").references
    assert found == (Operand("loop", (1,)), Operand("loop"), Operand("loop", (0, 12)))


@pytest.mark.parametrize(
    ("attributes", "callees"),
    [
        ("calls=%fused.1, kind=kLoop", {"calls": ("fused.1",)}),
        ("condition=%c, body=%b", {"body": ("b",), "condition": ("c",)}),
        ("branch_computations={%a, %b.2, c}", {"branch_computations": ("a", "b.2", "c")}),
        ("true_computation=a, false_computation=b", {"true_computation": ("a",), "false_computation": ("b",)}),
        ("called_computations={%f}", {"called_computations": ("f",)}),
        ("select=%ge, scatter=%add", {"select": ("ge",), "scatter": ("add",)}),
        ("to_apply={ROOT x = f32[] parameter(0)}", {"to_apply": ("_",)}),
        ("branch_computations={{x = f32[] iota()}, %a}", {"branch_computations": ("_", "a")}),
        ("dimensions={1}", {}),
    ],
)
def test_computations_that_are_called(attributes: str, callees: dict[str, tuple[str, ...]]) -> None:
    assert only(f"%x = f32[] custom-call(%y), {attributes}").callees == callees


def test_older_metadata_have_the_position_in_them() -> None:
    found = only(
        '%x = f32[] sine(%y), metadata={op_type="sin" op_name="jit(f)/sin" source_file="/a \\"b\\".py" source_line=3}'
    )
    assert found.metadata == Metadata("jit(f)/sin", "sin", frame=Frame('/a "b".py', "", 3, 3, 0, 0))
    assert found.frames == (Frame('/a "b".py', "", 3, 3, 0, 0),)


def test_names_that_are_not_ascii() -> None:
    found = only(r'%x = f32[] sine(%y), metadata={op_name="jit(f)/\303\251/sin"}')
    assert found.metadata is not None
    assert found.metadata.op_name == "jit(f)/é/sin"


def test_values_nested_very_deep() -> None:
    value = "{" * 5000 + "}" * 5000
    found = only(f"%x = f32[] custom-call({'(' * 5000}{')' * 5000}), backend_config={value}, api_version=3")
    assert found.attributes == {"backend_config": value, "api_version": "3"}
    assert found.backend_config == value


def test_what_is_unknown_is_kept_as_text() -> None:
    found = only("%x = f9e9m9[2]{0:Q(3)} brand-new-op(%y), brand_new={a=[1,{2}]}, other=a:b->c")
    assert (found.opcode, str(found.type)) == ("brand-new-op", "f9e9m9[2]{0:Q(3)}")
    assert found.attributes == {"brand_new": "{a=[1,{2}]}", "other": "a:b->c"}


def test_a_computation() -> None:
    lines = "%b = f32[] parameter(1)", "ROOT %c = f32[] add(%a, %b)", "%a = f32[] parameter(0)"
    found = body(*lines)
    assert tuple(each.text for each in found.instructions) == lines
    assert [each.name for each in found.parameters] == ["a", "b"]
    assert found.root is found.instruction("c")
    assert found.instruction("d") is None
    assert found.is_entry


@pytest.mark.parametrize(
    ("operands", "names"),
    [
        ("f32[] constant(0)", ("constant.anon",)),
        ("multiply(%a, %b), %c", ("multiply.anon", "c")),
        ("f32[2]{0:T(256)S(1)} %a, f32[2] negate(add(%a, %b))", ("a", "negate.anon")),
        ("(f32[2]{0:T(2,1)(4)SC(0:16)}, s32[]) %t#1", ("t",)),
    ],
)
def test_instructions_in_place_of_operands(operands: str, names: tuple[str, ...]) -> None:
    found = only(f"%x = f32[2]{{0}} add({operands}), dimensions={{}}")
    assert found.operands == names
    assert found.attributes == {"dimensions": "{}"}
