"""What is found in an operation's text by name is what the operation says when it is read as a whole."""

from __future__ import annotations

import pytest
from shardscope.inspector.dataflow.mlir import Dataflow
from shardscope.inspector.ir.program import Program
from shardscope.inspector.shardings.table import propagated
from shardscope.parsers.mlir import parse_module
from shardscope.parsers.source import Source

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_records_are_those_of_the_operations(function: str, sample: SampleCapture) -> None:
    _, flow = propagated(Program(sample(function)))
    if flow is not None:
        check(flow)


def check(flow: Dataflow) -> None:
    for number, row in enumerate(flow.rows):
        operation, records = flow.operation(number), flow.records
        assert records.operands(row) == operation.operands
        assert records.rule(row) == operation.annotations.sharding_rule
        assert records.propagation(row) == (operation.annotations.propagation or ())
        assert records.origins(row) == (operation.annotations.origins or ())


TEXTS = (
    "%1 = stablehlo.slice %a [0:1, 0:4] : (tensor<8x8xf32>) -> tensor<1x4xf32>",
    "%1:2 = stablehlo.reduce(%a init: %b), (%c init: %d) across dimensions = [0] "
    ": (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)",
    '%1 = stablehlo.custom_call @f(%a) {backend_config = "%b"} : (tensor<8x8xf32>) -> tensor<8x8xf32>',
    '%1 = stablehlo.custom_call @"a %b"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("%b")',
    '%1 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>',
    "%1 = sdy.sharding_constraint %a <@mesh, [{}, {}]> : tensor<8x8xf32>",
    '%1 = stablehlo.add %a, %a {a = "{sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>}"} : tensor<8xf32>',
    "%1 = stablehlo.add %a, %a {xla.sdy.sharding_rule = 1 : i32, "
    "sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=8}>} : tensor<8xf32>",
    '%1 = stablehlo.add %a, %a {sdy.sharding_origins = [{"a [b" = "self"}, {x = "mc_0_input: 1"}]} : tensor<8xf32>',
)


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_are_not_plain(text: str) -> None:
    module = parse_module(Source("text", f"func.func @main() {{\n  {text}\n  return\n}}\n".encode()))
    check(Dataflow(module, module.functions[0]))
