"""Conditions of several parts: each of them decides somewhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from shardscope.inspector.capture.model import Capture, Device
from shardscope.inspector.cost.lanes import _of_box
from shardscope.inspector.cost.peak_memory import _renamed
from shardscope.inspector.ir.program import Program
from shardscope.inspector.load import load_bytes
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.communication import _where
from shardscope.inspector.report.report import Torus
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.mlir.structure import nest_at
from shardscope.parsers.source import Source

from .complete import kept


def test_the_captured_script_is_not_the_one_on_disk() -> None:
    program = Program(kept.kept("missing_reduce_scatter.faulty"))
    assert program.script is not None
    assert program.script.captured
    assert Program(Capture()).script is None


def test_only_what_starts_there_is_an_operation_with_regions() -> None:
    text = b'%0 = "a.b"() : () -> i32\n%1 = "a.c"() ({\n  "a.d"() : () -> ()\n}) : () -> i32\n'
    source = Source("m", text)
    found = nest_at(source, text.index(b"%1"))
    assert found is not None
    assert found.span.start == text.index(b"%1")
    assert nest_at(source, 0) is None
    assert nest_at(source, text.index(b'"a.d"')) is None


@pytest.mark.parametrize("shape", [(2, 1, 1), (2, 2, 1), (1, 3, 2), (4, 1, 2)])
def test_links_of_a_box(shape: tuple[int, int, int]) -> None:
    """Both directions along each axis on which the box is longer than one chip, at each of its places."""
    places = [*product(*map(range, shape))]
    devices = [Device(number, at) for number, at in enumerate(places)]
    long = [axis for axis, size in enumerate(shape) if size > 1]
    expected = {(0, axis, step, at) for axis in long for step in (1, -1) for at in places}
    assert {*_of_box(devices, Torus(shape, (False, False, False)))} == expected


def test_gradients_are_counted_before_their_places_or_after() -> None:
    report = inspect(kept.kept("data_parallel.grad"))
    totals = [each for each in report.communication if each.gradients and each.strategy == "gradient sync"]
    assert totals
    for total in totals:
        counted = f"{total.gradients} gradient{'s' * (total.gradients > 1)}"
        assert _where(total, report, ()).startswith(f"{counted}: ")
        assert _where(replace(total, strategy="resharding"), report, ()).endswith(f", with {counted}")


def test_instructions_that_were_renamed_after_scheduling() -> None:
    text = (
        b"HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n"
        b'  a = f32[2] add(p, p), metadata={scheduling_name="add.1"}\n  ROOT n = f32[2] negate(a)\n}\n'
    )
    module = parse_module(Source("m", text))
    found = _renamed("add.1", module)
    assert found is not None
    assert found.name == "a"
    assert _renamed("add.2", module) is None


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_what_a_called_function_communicates_counts_for_each_call(calls: int) -> None:
    called = "".join(
        f"    %{n + 1} = func.call @inner(%{n}) : (tensor<4xf32>) -> tensor<4xf32>\n" for n in range(calls)
    )
    text = f"""module @m attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
{called}    return %{calls} : tensor<4xf32>
  }}
  func.func private @inner(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = "stablehlo.all_reduce"(%arg0) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }}) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}
"""
    (found,) = inspect(load_bytes("m.mlir", text.encode())).collectives
    assert found.kind == "all-reduce"
    assert found.executions == calls
