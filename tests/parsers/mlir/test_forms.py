"""Forms that the corpus does not have, as MLIR's own parser reads them: pretty and generic, by hand and by compilers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from shardscope.parsers.mlir import parse_module
from shardscope.parsers.mlir.collectives import parse_groups
from shardscope.parsers.source import Source

from .agreement import differences
from .conftest import Read

BEFORE = """
#later = loc("later"("b.py":7:8))
#bounds = #stablehlo.bounds<4>
sdy.mesh @mesh = <["x"=2, "y"=4, "z"=4]>
sdy.mesh @permuted = <["x"=4], device_ids=[3, 2, 1, 0]>
sdy.mesh @counted = <["x"=4], device_ids=[0, 1, 2, 3]>
sdy.mesh @maximal = <[], device_ids=[5]>
sdy.mesh @empty = <[]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
"""

# ruff: noqa: E501
BODIES = r"""
%0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y", ?}p1]>]>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y":(1)2, "x"}, {?}]>]>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], replicated={"x", "z":(2)2}>]>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced=max{"x"}>]>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=4], device_ids=[3, 1, 2, 0]>, [{"a"}, {}]>]>} : tensor<8x8xf32>
%0:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{"x"}, {}]>]>} %a, %a : tensor<8x8xf32>, tensor<8x8xf32>
%0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
%0 = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
%0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
%0 = sdy.all_slice [{"y"}, {}] %a out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<8x8xf32>
%0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
%0 = sdy.all_reduce {"y", "z":(2)2} %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
%0 = sdy.reduce_scatter [{"y"}, {}] %a out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<8x8xf32>
%0 = sdy.collective_permute %a out_sharding=<@mesh, [{"z":(1)2}, {}]> : tensor<8x8xf32>
%0 = sdy.all_reduce max {"y"} %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
%0 = sdy.reduce_scatter max [{"y"}, {}] %a out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<8x8xf32>
%0 = sdy.sharded_to_unreduced [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
%0 = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}, {}], unreduced={"y"}> : tensor<8x8xf32>
%0 = sdy.constant dense<1.0> : tensor<8x8xf32>
%0 = sdy.data_flow_edge %a sharding=<@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
%0 = sdy.data_flow_edge %a : tensor<8x8xf32>
%0 = sdy.func_data_flow_edge %a : tensor<8x8xf32>
%0 = sdy.propagation_barrier %a allowed_direction=BACKWARD : tensor<8x8xf32>
%0 = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] (%b: tensor<8x8xf32>) {
    sdy.return %b : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%b: tensor<4x2xf32>) {
    %1 = stablehlo.add %b, %b : tensor<4x2xf32>
    sdy.return %1 : tensor<4x2xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
sdy.sharding_group %a group_id=7 : tensor<8x8xf32>
%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k} need_replication={i} blocked_propagation={j}>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = stablehlo.reshape %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=8}>} : (tensor<8x8xf32>) -> tensor<64xf32>
%0 = stablehlo.add %a, %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}, custom>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} permutation={i}>} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.sharding_origins = [{x = "self", "y" = "input: 0", z = "constraint_0"}]} : tensor<8x8xf32>
%0 = stablehlo.add %a, %a {sdy.propagation_edges = #sdy.propagation_edges<[{step-3 = [{"x" = operand-0 -> [operand-1, result-0]}]}, {step-4 = [{"y":(1)2 = result-0 -> [operand-0]}]}]>} : tensor<8x8xf32>
%0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 12, type = 1>}> : (tensor<8x8xf32>) -> tensor<16x8xf32>
%0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<"0x00000000000000000100000000000000"> : tensor<1x2xi64>}> : (tensor<8x8xf32>) -> tensor<16x8xf32>
%0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>}> : (tensor<8x8xf32>) -> tensor<16x8xf32>
%0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<> : tensor<0x2xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
%c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
%c = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = stablehlo.reduce(%a init: %c), (%a init: %c) across dimensions = [1] : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
   reducer(%p: tensor<f32>, %r: tensor<f32>) (%q: tensor<f32>, %s: tensor<f32>) {
    %1 = stablehlo.add %p, %r : tensor<f32>
    stablehlo.return %1, %q : tensor<f32>, tensor<f32>
  }
%c = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<8x8xf32>
   cond {
    %1 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    stablehlo.return %i, %x : tensor<i32>, tensor<8x8xf32>
  }
%c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.case"(%c) ({ stablehlo.return %a : tensor<8x8xf32>
  }, {
    stablehlo.return %a : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
%p = stablehlo.constant dense<true> : tensor<8x8xi1>
  %0 = stablehlo.select %p, %a, %a : tensor<8x8xi1>, tensor<8x8xf32>
%0 = stablehlo.complex %a, %a : tensor<8x8xcomplex<f32>>
%t = stablehlo.tuple %a, %a : tuple<tensor<8x8xf32>, tensor<8x8xf32>>
  %0 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<8x8xf32>, tensor<8x8xf32>>) -> tensor<8x8xf32>
%values, %indices = chlo.top_k(%a, k = 2) : tensor<8x8xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
%0 = stablehlo.add %a, %a : tensor<8 x 8 x f32>
%b = stablehlo.custom_call @bounded(%a) : (tensor<8x8xf32>) -> tensor<?xf32, #bounds>
%0 = stablehlo.slice %a [0:8:2, 1:5] : (tensor<8x8xf32>) -> tensor<4x4xf32>
%0 = stablehlo.custom_call @Sharding(%a) {backend_config = "", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = stablehlo.custom_call @f(%a) {api_version = 4 : i32, mhlo.backend_config = {a = [1, 2], "b c" = "}\22{"}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = call @"odd name"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = func.call @declared(%a) {a.unit, b = 1 : i32} : (tensor<8x8xf32>) -> tensor<8x8xf32>
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc("a.py":3:4)
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc("a.py":3:4 to :9)
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc("a.py":3:4 to 5:6)
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc(fused["a", "b"("a.py":1:2)])
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc(fused["a", fused["b", "a", "c"], fused<"kept">["d"]])
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc(fused<"why">["a", #later])
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc(fused<{a = "%{}"}>["a\\\22\C3\A9", "b"])
%0 = stablehlo.add %a, %a : tensor<8x8xf32> loc(callsite("f"("a.py":1:2) at callsite("g" at #later)))
"""

BEHIND = """
  return
}
func.func private @declared(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32>
func.func @"odd name"(%a: tensor<8x8xf32>) -> (tensor<8x8xf32> {jax.result_info = "%{}"}) {
  // A comment, with "quotes", { and %names.
  return %a : tensor<8x8xf32>  // and another one
}
"""


def bodies() -> list[str]:
    """What stands at the start of a line in `BODIES` begins a new one."""
    found: list[str] = []
    for line in BODIES.strip().splitlines():
        if line.startswith(" "):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def test_every_form_is_to_mlir_what_it_is_to_us(mlir: Read, tmp_path: Path) -> None:
    texts = {}
    for number, body in enumerate(bodies()):
        path = tmp_path / f"{number}.mlir"
        path.write_text(f"{BEFORE}  {body}{BEHIND}")
        texts[path] = body
    answers = mlir(texts)
    # Some forms are newer than some of the supported versions.
    unknown = [texts[path] for path, answer in answers.items() if "error" in answer]
    assert len(unknown) <= 7, [(texts[path], each["error"]) for path, each in answers.items() if "error" in each]
    for path, answer in answers.items():
        module = parse_module(Source(texts[path], path.read_bytes()))
        assert list(map(str, module.problems)) == []
        if "operations" in answer:
            assert list(differences(module, answer["operations"])) == []


ENDS = [
    "func.func @f() {\n    return\n  }\n\n// } remarks\nfunc.func @g() {\n  return\n}\n",
    "func.func @f() {\n  return\n  }\n// CHECK: {{.*}}\n",
    "func.func @f(%a: tensor<i1>) {\n  func.call @f(%a) : (tensor<i1>) -> ()\n  return\n  }  // of f\n",
    "module {\n  func.func @f() {\n    return\n    }\n}\n",
    "module {\n  func.func @f() {\n    return\n}\n  func.func @g() {\n    return\n  }\n}\n",
]
"""Functions whose closing braces are indented otherwise than they are."""


@pytest.mark.once
def test_functions_end_where_they_do_for_mlir(mlir: Read, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.mlir" for number in range(len(ENDS))]
    for path, text in zip(paths, ENDS, strict=True):
        path.write_text(text)
    for path, answer in mlir(paths).items():
        module = parse_module(Source(path.name, path.read_bytes()))
        assert list(map(str, module.problems)) == []
        assert list(differences(module, answer["operations"])) == []


@pytest.mark.parametrize("text", ENDS)
def test_functions_are_those_of_mlir(text: str) -> None:
    """Also where they are indented as no printer does it, so that all around them has to be read."""
    with make_ir_context():
        operations = ir.Module.parse(re.sub(r"func\.call .*", "", text)).body.operations
        true = [ir.StringAttr(each.attributes["sym_name"]).value for each in operations]
    assert [each.name for each in parse_module(Source("t", text.encode())).functions] == true


def test_axes_may_be_names_alone() -> None:
    mesh = '#stablehlo.mesh<axes = [<name = "x", size = 2>, <name = "y", size = 2>]>'
    spelled = '["y"]', '[#stablehlo.axis_ref<name = "y">]'
    one, other = (
        parse_groups(f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = {axes}>", lambda _: None)
        for axes in spelled
    )
    assert one == other
    assert one.devices(4) == ((0, 1), (2, 3))


def test_types_of_operands_that_only_another_dialect_knows() -> None:
    """Of `memref.subview` one type is that of the first operand, the others are indices."""
    (operation,) = parse_module(Source("s", b"%0 = memref.subview %a[%i] : memref<4xf32> to memref<2xf32>\n")).body
    assert [str(each) for each in operation.operand_types] == ["", ""]


def test_channels_of_the_older_dialect() -> None:
    text = '%0 = "mhlo.all_gather"(%a) {channel_handle = #mhlo.channel_handle<handle = 3, type = 0>} : (f32) -> f32\n'
    (operation,) = parse_module(Source("mhlo", text.encode())).body
    assert operation.channel == 3


FUNCTIONS = """\
module {
  func.func private @none() -> ()
  func.func private @one(tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.func private @two(tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>)
  func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) -> tensor<4xf32> {
    %0 = func.constant @one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = func.constant @two : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>)
    %2 = func.constant @none : () -> ()
    %3 = func.call_indirect %0(%a, %b) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %4:2 = func.call_indirect %1(%3) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xi32>)
    func.call_indirect %2() : () -> ()
    return %4#0 : tensor<4xf32>
  }
}
"""


def test_types_of_functions_are_those_of_mlir() -> None:
    """Of the function that an indirect call takes, too."""
    with make_ir_context():
        parsed = ir.Module.parse(FUNCTIONS)
        (body,) = (each.regions[0] for each in parsed.body.operations if len(each.regions[0].blocks))
        expected = [
            ([str(value.type) for value in each.operation.operands], [str(value.type) for value in each.results])
            for each in body.blocks[0].operations
            if each.operation.name != "func.return"
        ]
    module = parse_module(Source("f", FUNCTIONS.encode()))
    found = sorted(module.operations({"func.constant", "func.call_indirect"}), key=lambda each: each.span)
    assert [(list(map(str, each.operand_types)), list(map(str, each.result_types))) for each in found] == expected


def test_attributes_of_a_function_are_none_of_its_results(mlir: Read, tmp_path: Path) -> None:
    text = """
func.func private @f(%a: tensor<8xf32>) -> (tensor<8xf32> {b.c = "d"}) attributes {e.f = "g"} {
  return %a : tensor<8xf32>
}
"""
    path = tmp_path / "attributes.mlir"
    path.write_text(text)
    module = parse_module(Source(path.name, text.encode()))
    assert list(differences(module, mlir([path])[path]["operations"])) == []
    assert [str(result.type) for result in module.functions[0].results] == ["tensor<8xf32>"]


@pytest.mark.once
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            "%0 = scf.for %i = %n to %n step %n iter_args(%b = %a) -> (f32) {\n scf.yield %b : f32\n}\nreturn %0 : f32",
            "the form of scf.for is not read",
        ),
        ("scf.if %t {\n}\nreturn %a : f32", "the form of scf.if is not read"),
        (
            "%0:2 = func.call @two() : () -> (f32, f32)\nreturn %0 : f32",
            "this use of %0 is not read: of several results, one is `%name#0`",
        ),
    ],
)
def test_what_is_not_read_is_reported(mlir: Read, tmp_path: Path, body: str, problem: str) -> None:
    text = f"func.func private @two() -> (f32, f32)\nfunc.func @f(%n: index, %a: f32, %t: i1) -> f32 {{\n{body}\n}}\n"
    path = tmp_path / "module.mlir"
    path.write_text(text)
    assert "operations" in mlir([path])[path]
    assert [each.message for each in parse_module(Source(path.name, text.encode())).problems] == [problem]
