"""What a module names and does not have is a problem where, and only where, the parsers in jaxlib refuse the module."""

from __future__ import annotations

import pytest
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from shardscope.parsers import hlo, mlir
from shardscope.parsers.source import Source

from tests.parsers.damage import is_linear

MLIR = """\
module @m attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<32xf32> {{
    %0:2 = stablehlo.while(%iterArg = {operand}, %iterArg_0 = %arg0) : tensor<8xf32>, tensor<8xf32> cond {{
      %c = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %3 = func.call @{callee}(%iterArg) : (tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %3, %iterArg_0 : tensor<8xf32>, tensor<8xf32>
    }}
    %1 = "stablehlo.all_gather"(%0#1) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle\
<handle = 1, type = 1>, replica_groups = dense<{groups}> : tensor<{rows}x{columns}xi64>, use_global_device_ids}}> \
: (tensor<8xf32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }}
  func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
    %9 = stablehlo.custom_call @foreign(%arg0) {{mhlo.sharding = "%nothing"}} : (tensor<8xf32>) -> tensor<8xf32>
    return %9 : tensor<8xf32>
  }}
}}
"""
RIGHT = {"operand": "%arg0", "callee": "inner", "groups": "[[0, 1, 2, 3]]", "rows": "1", "columns": "4"}

HLO = """\
HloModule m, num_partitions=4, entry_computation_layout={{(f32[8]{{0}})->f32[8]{{0}}}}

%add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %{operand})
}}

ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0), metadata={{op_name="%nothing"}}
  ROOT %r = f32[8]{{0}} all-reduce(%p), channel_id=1, replica_groups={groups}, use_global_device_ids=true, \
to_apply=%{to}
}}
"""


def refused_mlir(text: str) -> bool:
    try:
        ir.Module.parse(text, make_ir_context())
    except ir.MLIRError:
        return True
    return False


def mlir_problems(text: str) -> list[str]:
    return [problem.message for problem in mlir.parse_module(Source("m", text.encode())).problems]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"operand": "%9"},
        {"operand": "%c"},
        {"callee": "outer"},
        {"callee": "foreign"},
        {"groups": "[[0, 1, 2, 2]]"},
        {"groups": "[[0, 1, 2, 4]]"},
        {"groups": "[[0, 1], [2, 3]]", "rows": "2", "columns": "2"},
    ],
)
def test_mlir(changed: dict[str, str]) -> None:
    text = MLIR.format(**{**RIGHT, **changed})
    if changed.get("groups") == "[[0, 1], [2, 3]]":
        text = text.replace("tensor<32xf32>", "tensor<16xf32>")
    if changed.get("operand") != "%c":  # the scopes of regions are MLIR's alone
        assert bool(mlir_problems(text)) == refused_mlir(text)


def test_groups_of_too_many_devices() -> None:
    text = MLIR.format(**{**RIGHT, "groups": "[[0, 1, 2, 3], [4, 5, 6, 7]]", "rows": "2"})
    assert mlir_problems(text) == ["these groups have 8 devices, and the module runs on 4"]


@pytest.mark.parametrize(
    ("operand", "to", "groups", "is_right"),
    [
        ("y", "add", "{{0,1},{2,3}}", True),
        ("y", "add", "[2,2]<=[4]", True),
        ("y", "add", "{}", True),
        ("p", "add", "{}", False),
        ("z", "add", "{}", False),
        ("y", "sum", "{}", False),
        ("y", "add.1", "{}", False),
        ("y", "add", "{{0,1},{2,2}}", False),
        ("y", "add", "{{0,1},{2}}", False),
        ("y", "add", "{{0,1,2,3},{4,5,6,7}}", False),
        ("y", "add", "mesh['x'=8] {'x'}", False),
    ],
)
def test_hlo(operand: str, to: str, groups: str, is_right: bool) -> None:
    text = HLO.format(operand=operand, to=to, groups=groups)
    assert (not hlo.parse_module(Source("m", text.encode())).problems) == is_right
    unprinted = text.replace("\n  ", "\n").replace("%", "").replace('"nothing"', '"%nothing"')
    assert (not hlo.parse_module(Source("m", unprinted.encode())).problems) == is_right


@pytest.mark.parametrize(("operand", "to"), [("y", "add"), ("p", "add"), ("z", "add"), ("y", "add.1"), ("y", "p")])
def test_what_xla_reads(operand: str, to: str) -> None:
    xla = pytest.importorskip("jaxlib._hlo")
    text = HLO.format(operand=operand, to=to, groups="{}")
    try:
        xla.hlo_module_from_text(text)
        is_right = True
    except Exception:
        is_right = False
    assert (not hlo.parse_module(Source("m", text.encode())).problems) == is_right


def test_what_is_only_a_part_lacks_nothing() -> None:
    (_, part) = HLO.format(operand="y", to="add.1", groups="{}").split("ENTRY")
    assert not hlo.parse_module(Source("m", f"ENTRY{part}".encode())).problems
    assert not mlir_problems("%1 = stablehlo.add %0, %0 : tensor<8xf32>\n")


def test_work_grows_with_the_length() -> None:
    lines = [f"  %v{number} = f32[] add(%w{number}, %x)\n" for number in range(800)]
    texts = [
        f"HloModule m\n\nENTRY %e (x: f32[]) -> f32[] {{\n  %x = f32[] parameter(0)\n{''.join(lines[:count])}}}\n"
        for count in (20, 50, 200, 800)
    ]
    assert is_linear(lambda text: hlo.parse_module(Source("m", text.encode())).problems, *texts)
