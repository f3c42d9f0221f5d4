"""Operations and bytes of instructions, and the time of a schedule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.collectives.context import AnalysisContext
from shardscope.inspector.collectives.hlo import hlo_collectives
from shardscope.inspector.cost import matmul
from shardscope.inspector.cost.collectives import with_estimates
from shardscope.inspector.cost.function import cost_of
from shardscope.inspector.cost.matmul import matmul_flops
from shardscope.inspector.cost.places import Machine
from shardscope.inspector.cost.schedule import Schedule
from shardscope.inspector.cost.work import Workload
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.source import Source

from .test_collectives import nodes, torus

pytestmark = pytest.mark.once


def module(text: str) -> HloModule:
    return parse_module(Source("test", text.encode()))


def flops(text: str) -> int | None:
    parsed = module(f"HloModule m\n\nENTRY %main {{\n{text}\n}}\n")
    assert parsed.entry is not None
    root = parsed.entry.root
    assert root is not None
    return matmul_flops(root, [found.type for name in root.operands if (found := parsed.entry.instruction(name))])


def test_dots() -> None:
    assert flops("""
  %a = bf16[8,128,64]{2,1,0} parameter(0)
  %b = bf16[8,64,32]{2,1,0} parameter(1)
  ROOT %dot = bf16[8,128,32]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}""") == 2 * 8 * 128 * 32 * 64  # fmt: skip # noqa: E501
    assert flops("""
  %a = bf16[128,64]{1,0} parameter(0)
  %b = bf16[64,32]{1,0} parameter(1)
  ROOT %gemm = (bf16[128,32]{1,0}, s8[1024]{0}) custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}""") == 2 * 128 * 32 * 64  # fmt: skip # noqa: E501
    assert flops("  ROOT %a = bf16[8]{0} parameter(0)") is None


@given(
    image=st.integers(1, 7),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 3),
    dilation=st.integers(1, 2),
    spread=st.integers(1, 2),
)
def test_convolutions_count_what_numpy_would_multiply(
    image: int, kernel: int, stride: int, pad: int, dilation: int, spread: int
) -> None:
    """Written out over a padded line: a product counts where both factors are there."""
    there = np.zeros((image - 1) * dilation + 1 + 2 * pad, bool)
    there[pad : pad + (image - 1) * dilation + 1 : dilation] = True
    reach = (kernel - 1) * spread + 1
    outputs = (len(there) - reach) // stride + 1
    if outputs < 1:
        return
    met = sum(there[o * stride + k * spread] for o in range(outputs) for k in range(kernel))
    window = f"size={kernel} stride={stride} pad={pad}_{pad} lhs_dilate={dilation} rhs_dilate={spread}"
    text = f"""
  %a = f32[3,{image},5]{{2,1,0}} parameter(0)
  %b = f32[{kernel},5,7]{{2,1,0}} parameter(1)
  ROOT %c = f32[3,{outputs},7]{{2,1,0}} convolution(%a, %b), window={{{window}}}, dim_labels=b0f_0io->b0f"""
    assert flops(text) == 2 * 3 * 7 * 5 * met


@pytest.mark.parametrize(("kernel", "image"), [(1, 1), (5, 7), (60, 40)])
def test_up_to_a_limit_what_meets_in_a_window_is_counted(
    kernel: int, image: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With numpy's padding of `full` each of the one meets each of the other; beyond the limit padding counts."""
    pad, outputs = kernel - 1, len(np.convolve(np.ones(kernel), np.ones(image)))
    text = f"""
  %a = f32[1,{image},1]{{2,1,0}} parameter(0)
  %b = f32[{kernel},1,1]{{2,1,0}} parameter(1)
  ROOT %c = f32[1,{outputs},1]{{2,1,0}} convolution(%a, %b), window={{size={kernel} pad={pad}_{pad}}}, dim_labels=b0f_0io->b0f"""  # noqa: E501
    for limit in (kernel * outputs, kernel * outputs - 1):
        monkeypatch.setattr(matmul, "MAX_WINDOW", limit)
        assert flops(text) == 2 * (image * kernel if limit == kernel * outputs else kernel * outputs)


def test_a_batched_product_written_as_a_convolution() -> None:
    """As TPUs write it: the batch is a dimension that only its own entries meet in."""
    text = """
  %a = bf16[16,128,64]{2,1,0} parameter(0)
  %b = bf16[16,64,32]{2,1,0} parameter(1)
  ROOT %c = bf16[16,128,32]{2,1,0} convolution(%a, %b), window={size=16 stride=15 pad=0_0 lhs_dilate=16}, dim_labels=0bf_0io->0bf"""  # fmt: skip # noqa: E501
    assert flops(text) == 2 * 16 * 128 * 32 * 64


FUSED = """HloModule m, is_scheduled=true

%sliced (p0: f32[100,64,64], p1: s32[], p2: f32[64,64]) -> f32[64,64] {
  %p0 = f32[100,64,64]{2,1,0} parameter(0)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %slice = f32[1,64,64]{2,1,0} dynamic-slice(%p0, %p1, %zero, %zero), dynamic_slice_sizes={1,64,64}
  %flat = f32[64,64]{1,0} bitcast(%slice)
  %p2 = f32[64,64]{1,0} parameter(2)
  ROOT %dot = f32[64,64]{1,0} dot(%flat, %p2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%updated (p0.1: f32[100,64,64], p1.1: s32[], p2.1: f32[1,64,64]) -> f32[100,64,64] {
  %p0.1 = f32[100,64,64]{2,1,0} parameter(0)
  %p1.1 = s32[] parameter(1)
  %p2.1 = f32[1,64,64]{2,1,0} parameter(2)
  %zero.1 = s32[] constant(0)
  ROOT %update = f32[100,64,64]{2,1,0} dynamic-update-slice(%p0.1, %p2.1, %p1.1, %zero.1, %zero.1)
}

ENTRY %main (w: f32[100,64,64], i: s32[], x: f32[64,64], y: f32[1,64,64]) -> f32[100,64,64] {
  %w = f32[100,64,64]{2,1,0} parameter(0)
  %i = s32[] parameter(1)
  %x = f32[64,64]{1,0} parameter(2)
  %y = f32[1,64,64]{2,1,0} parameter(3)
  %product = f32[64,64]{1,0} fusion(%w, %i, %x), kind=kOutput, calls=%sliced
  ROOT %kept = f32[100,64,64]{2,1,0} fusion(%w, %i, %y), kind=kLoop, calls=%updated
}
"""


def test_of_what_is_sliced_only_the_slice_counts() -> None:
    parsed = module(FUSED)
    assert parsed.entry is not None
    workload = Workload(parsed, "gpu")
    tile = 64 * 64 * 4
    product, kept = (parsed.entry.instruction(name) for name in ("product", "kept"))
    assert product is not None
    assert kept is not None
    assert workload.of(product).flops == 2 * 64**3
    assert workload.of(product).bytes == 3 * tile + 4
    assert workload.of(kept).bytes == 2 * tile + 4


def test_vector_memory_is_not_the_memory_of_a_tpu() -> None:
    parsed = module("""HloModule m, is_scheduled=true

ENTRY %main {
  %a = f32[256]{0:T(256)} parameter(0)
  %copied = (f32[256]{0:T(256)S(1)}, f32[256]{0:T(256)}, u32[]{:S(2)}) copy-start(%a)
  %there = f32[256]{0:T(256)S(1)} copy-done(%copied)
  ROOT %b = f32[256]{0:T(256)} negate(%there)
}
""")
    assert parsed.entry is not None
    root = parsed.entry.root
    assert root is not None
    assert Workload(parsed, "tpu").of(root).bytes == 1024
    assert Workload(parsed, "gpu").of(root).bytes == 2048


SCHEDULED = """HloModule m, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

%body (carried: (s32[], f32[4096,4096])) -> (s32[], f32[4096,4096]) {{
  %carried = (s32[], f32[4096,4096]{{1,0}}) parameter(0)
  %n = s32[] get-tuple-element(%carried), index=0
  %x = f32[4096,4096]{{1,0}} get-tuple-element(%carried), index=1
  {body}
  %one = s32[] constant(1)
  %next = s32[] add(%n, %one)
  ROOT %out = (s32[], f32[4096,4096]{{1,0}}) tuple(%next, %y)
}}

%condition (carried.1: (s32[], f32[4096,4096])) -> pred[] {{
  %carried.1 = (s32[], f32[4096,4096]{{1,0}}) parameter(0)
  %n.1 = s32[] get-tuple-element(%carried.1), index=0
  %bound = s32[] constant(10)
  ROOT %more = pred[] compare(%n.1, %bound), direction=LT
}}

ENTRY %main (x.1: f32[4096,4096]) -> f32[4096,4096] {{
  %x.1 = f32[4096,4096]{{1,0}} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[4096,4096]{{1,0}}) tuple(%zero, %x.1)
  %loop = (s32[], f32[4096,4096]{{1,0}}) while(%start), condition=%condition, body=%body
  ROOT %result = f32[4096,4096]{{1,0}} get-tuple-element(%loop), index=1
}}
"""
GROUPS = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add"
DOT = "dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SHAPE = "f32[4096,4096]{1,0}"


def scheduled(body: str, machine: Machine) -> tuple[float, float, float, float]:
    parsed = module(SCHEDULED.format(body=body))
    found = hlo_collectives("hlo", parsed, AnalysisContext((), 4, None, False))
    cost = cost_of(Schedule(parsed, tuple(with_estimates(found, machine)), machine))
    assert not cost.at_least
    assert cost.flops == 10 * 2 * 4096**3
    return cost.compute, cost.communication, cost.total, cost.waiting


def test_loops_are_multiplied_and_what_stands_between_start_and_done_hides() -> None:
    machine = nodes("h100", 4)
    one = f"%y = {SHAPE} all-reduce(%x), {GROUPS}\n  %d = {SHAPE} {DOT}"
    compute, communication, total, waiting = scheduled(one, machine)
    assert compute == pytest.approx(10 * 2 * 4096**3 / 989e12)
    assert waiting == pytest.approx(communication)
    assert total == pytest.approx(compute + communication)
    between = f"%s = {SHAPE} all-reduce-start(%x), {GROUPS}\n  %d = {SHAPE} {DOT}\n  %y = {SHAPE} all-reduce-done(%s)"
    _, same, overlapped, exposed = scheduled(between, machine)
    assert same == communication
    assert exposed == pytest.approx(max(0.0, communication - compute))
    assert overlapped == pytest.approx(max(compute, communication))


def test_the_time_of_a_product_is_that_of_computing_or_of_memory() -> None:
    machine = torus("v5e", 2, 2)
    body = f"%y = {SHAPE} {DOT}"
    compute, _, total, waiting = scheduled(body, machine)
    moved = 10 * 3 * 4096**2 * 4 / machine.chip.figure("hbm_bandwidth")
    assert total == pytest.approx(max(compute, moved))
    assert waiting == 0
    assert math.isfinite(total)
