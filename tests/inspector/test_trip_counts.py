"""Trip counts of loops, against loops that are counted in Python."""

from __future__ import annotations

import operator

import pytest
from shardscope.inspector.capture.model import STAGES, Capture, Stage
from shardscope.inspector.execution_counts.execution import count
from shardscope.inspector.pipeline import inspect
from shardscope.parsers.source import Source

COMPARE = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "NE": operator.ne}

LOOP = """module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %start = stablehlo.constant dense<START> : tensor<i32>
    %0:2 = stablehlo.while(%i = %start, %v = %arg0) : tensor<i32>, tensor<4xf32>
    cond {
      %bound = stablehlo.constant dense<BOUND> : tensor<i32>
      %1 = stablehlo.compare DIRECTION, %i, %bound, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %step = stablehlo.constant dense<STEP> : tensor<i32>
      %1 = "stablehlo.all_reduce"(%v) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, \
replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = stablehlo.STEPPED : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<4xf32>
  }
}
"""


def brute(start: int, step: int, direction: str, bound: int) -> int | None:
    rounds = 0
    while COMPARE[direction](start, bound):
        start, rounds = start + step, rounds + 1
        if rounds > 100:
            return None
    return rounds


@pytest.mark.parametrize("direction", COMPARE)
def test_against_loops_of_python(direction: str) -> None:
    for start in range(-4, 5):
        for step in range(-3, 4):
            for bound in range(-4, 5):
                found = count(start, step, direction, bound)
                expected = brute(start, step, direction, bound)
                assert found == expected or (found is None and (expected in (None, 0))), (start, step, bound)


@pytest.mark.parametrize(
    ("stepped", "start", "direction", "bound", "rounds"),
    [
        ("add %i, %step", 0, "LT", 7, 4),
        ("add %step, %i", 0, "LT", 7, 4),
        ("subtract %i, %step", 9, "GT", 0, 5),
        ("subtract %step, %i", 9, "GT", 0, None),  # 9, -7, 9, … is no counting
    ],
)
def test_steps(stepped: str, start: int, direction: str, bound: int, rounds: int | None) -> None:
    words = {"START": start, "BOUND": bound, "DIRECTION": direction, "STEPPED": stepped, "STEP": 2}
    text = LOOP
    for word, value in words.items():
        text = text.replace(word, str(value))
    source = Source("stablehlo", text.encode())
    report = inspect(Capture(stages=(Stage("stablehlo", STAGES["stablehlo"].dialect, source),), complete=True))
    (found,) = report.collectives
    assert found.executions == rounds


HLO_LOOP = """HloModule m, is_scheduled=true, num_partitions=2

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

%body (t: (s32[], f32[4])) -> (s32[], f32[4]) {
  %t = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %v = f32[4] get-tuple-element(%t), index=1
  %step = s32[] constant(2)
  %next = s32[] STEPPED
  %r = f32[4] all-reduce(%v), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum
  ROOT %o = (s32[], f32[4]) tuple(%next, %r)
}

%condition (t: (s32[], f32[4])) -> pred[] {
  %t = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %bound = s32[] constant(BOUND)
  ROOT %c = pred[] compare(%i, %bound), direction=DIRECTION
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  %start = s32[] constant(START)
  %init = (s32[], f32[4]) tuple(%start, %p)
  %w = (s32[], f32[4]) while(%init), condition=%condition, body=%body
  ROOT %g = f32[4] get-tuple-element(%w), index=1
}
"""


@pytest.mark.parametrize(
    ("stepped", "step", "start", "direction", "bound"),
    [
        ("add(%i, %step)", 2, 0, "LT", 7),
        ("subtract(%i, %step)", -2, 9, "GT", 0),
        ("subtract(%step, %i)", 0, 9, "GT", 0),
    ],
)
def test_steps_of_hlo(stepped: str, step: int, start: int, direction: str, bound: int) -> None:
    text = HLO_LOOP
    for word, value in {"START": start, "BOUND": bound, "DIRECTION": direction, "STEPPED": stepped}.items():
        text = text.replace(word, str(value))
    report = inspect(Capture(stages=(Stage("hlo", "hlo", Source("loop", text.encode())),), complete=True))
    (found,) = report.collectives
    rounds = brute(start, step, direction, bound) if step else None  # 2 - i is no counting
    assert found.executions == rounds
    mirrored = {"LT": "GT", "GT": "LT"}[direction]
    swapped = text.replace(f"compare(%i, %bound), direction={direction}", f"compare(%bound, %i), direction={mirrored}")
    assert swapped != text
    (found,) = inspect(
        Capture(stages=(Stage("hlo", "hlo", Source("loop", swapped.encode())),), complete=True)
    ).collectives
    assert found.executions == rounds
