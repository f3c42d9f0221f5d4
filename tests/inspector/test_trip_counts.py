"""Trip counts of loops, against loops that are counted in Python."""

from __future__ import annotations

import operator

import pytest
from shardscope.inspector.capture.model import STAGES, Capture, Stage
from shardscope.inspector.execution_counts.execution import count
from shardscope.inspector.execution_counts.hlo_trip_count import MAX_STEPS
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
        ("add(%i, %step)", 2, 2**63 - 7, "LT", 2**63 - 1),
        ("subtract(%i, %step)", -2, 7 - 2**62, "GT", -(2**62)),
    ],
)
def test_steps_of_hlo(stepped: str, step: int, start: int, direction: str, bound: int) -> None:
    text = HLO_LOOP.replace("s32", "s64")
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


ADDED = """
%inc (p: s32[], q: s32[]) -> s32[] {
  %p = s32[] parameter(0)
  %q = s32[] parameter(1)
  %one = s32[] constant(1)
  %more = s32[] add(%p, %one)
  ROOT %sum = s32[] add(%more, %one)
}

%below (p: s32[], q: s32[]) -> pred[] {
  %p = s32[] parameter(0)
  %q = s32[] parameter(1)
  ROOT %less = pred[] compare(%q, %p), direction=LT
}

%body"""


def copies(count: int) -> str:
    """Each of the one before."""
    return "\n".join(
        f"  %k{number} = s32[] copy(%{f'k{number - 1}' if number > 1 else 'i'})" for number in range(1, count + 1)
    )


REWRITTEN: dict[str, tuple[tuple[str, str], int | None]] = {
    "as it is": (("", ""), 4),
    "a fusion steps": (("s32[] add(%i, %step)", "s32[] fusion(%i, %step), kind=kLoop, calls=%inc"), 4),
    "a call steps": (("s32[] add(%i, %step)", "s32[] call(%i, %step), to_apply=%inc"), 4),
    "a fusion steps from something else": (
        ("s32[] add(%i, %step)", "s32[] fusion(%step, %i), kind=kLoop, calls=%inc"),
        None,
    ),
    "a fusion of nothing": (("s32[] add(%i, %step)", "s32[] fusion(%i), kind=kLoop, calls=%nowhere"), None),
    "a fusion compares": (
        ("pred[] compare(%i, %bound), direction=LT", "pred[] fusion(%bound, %i), kind=kLoop, calls=%below"),
        4,
    ),
    "a call compares": (("pred[] compare(%i, %bound), direction=LT", "pred[] call(%bound, %i), to_apply=%below"), 4),
    "copies": (("%next = s32[] add(%i, %step)", "%k = s32[] copy(%i)\n  %next = s32[] add(%k, %step)"), 4),
    "as many copies as are looked through": (
        ("%next = s32[] add(%i, %step)", f"{copies(MAX_STEPS - 10)}\n  %next = s32[] add(%k{MAX_STEPS - 10}, %step)"),
        4,
    ),
    "too many copies": (
        ("%next = s32[] add(%i, %step)", f"{copies(MAX_STEPS + 1)}\n  %next = s32[] add(%k{MAX_STEPS + 1}, %step)"),
        None,
    ),
    "a copied start": (("tuple(%start, %p)", "tuple(%again, %p)"), 4),
    "an offset": (
        ("ROOT %c = pred[] compare(%i,", "%j = s32[] add(%bound, %i)\n  ROOT %c = pred[] compare(%j,"),
        0,
    ),
    "steps that add up": (
        ("%next = s32[] add(%i, %step)", "%k = s32[] add(%i, %step)\n  %next = s32[] add(%k, %step)"),
        2,
    ),
    "a product": (("add(%i, %step)", "multiply(%i, %step)"), None),
    "the bound is carried": (("compare(%i, %bound)", "compare(%i, %i)"), None),
    "nothing is carried": (("compare(%i, %bound)", "compare(%bound, %bound)"), None),
    "it steps by itself": (("add(%i, %step)", "add(%i, %i)"), None),
    "another element": (("tuple(%next, %r)", "tuple(%step, %r)"), None),
    "the start is unknown": (("%start = s32[] constant(0)", "%start = s32[] partition-id()"), None),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_loops_of_hlo_that_are_written_otherwise(name: str) -> None:
    """They start at 0 and go on below 7, by 2."""
    text = HLO_LOOP
    for word, value in {"START": 0, "BOUND": 7, "DIRECTION": "LT", "STEPPED": "add(%i, %step)"}.items():
        text = text.replace(word, str(value))
    (before, after), rounds = REWRITTEN[name]
    text = text.replace("\n%body", ADDED, 1).replace("  %init", "  %again = s32[] copy(%start)\n  %init")
    assert before in text
    text = text.replace(before, after) if before else text
    (found,) = inspect(Capture(stages=(Stage("hlo", "hlo", Source("loop", text.encode())),), complete=True)).collectives
    assert found.executions == rounds or (found.executions is None and rounds == 0)


OUTSIDE: dict[str, tuple[tuple[tuple[str, str], ...], int | None]] = {
    "the bound is outside": ((("%i, %bound", "%i, %start"), ("LT", "LE")), 1),
    "mirrored": ((("LT, %i, %bound", "GT, %bound, %i"),), 4),
    "mirrored, outside": ((("LT, %i, %bound", "GE, %start, %i"),), 1),
    "the start is an argument": ((("%i = %start", "%i = %arg1"), ("%arg0:", "%arg1: tensor<i32>, %arg0:")), None),
    "the bound is an argument": ((("%i, %bound", "%i, %arg1"), ("%arg0:", "%arg1: tensor<i32>, %arg0:")), None),
    "the step is an argument": ((("%i, %step", "%i, %arg1"), ("%arg0:", "%arg1: tensor<i32>, %arg0:")), None),
    "it steps by itself": ((("add %i, %step", "add %i, %i"),), None),
    "a product": ((("add %i, %step", "multiply %i, %step"),), None),
    "another value goes on": ((("return %2, %1", "return %step, %1"),), None),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_loops_of_stablehlo_that_are_written_otherwise(name: str) -> None:
    text = LOOP
    words = {"START": 0, "BOUND": 7, "DIRECTION": "LT", "STEPPED": "add %i, %step", "STEP": 2}
    for word, value in words.items():
        text = text.replace(word, str(value))
    changes, rounds = OUTSIDE[name]
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    stage = Stage("stablehlo", STAGES["stablehlo"].dialect, Source("stablehlo", text.encode()))
    (found,) = inspect(Capture(stages=(stage,), complete=True)).collectives
    assert found.executions == rounds
