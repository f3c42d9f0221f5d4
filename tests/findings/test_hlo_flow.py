"""Where arrays go in HLO: into calls, branches and loops, and out again."""

from __future__ import annotations

import pytest
from shardscope.inspector.findings.support.hlo_values import MAX_CALLS, HloFlow, HloUse, HloValue
from shardscope.parsers.hlo import Instruction, parse_module
from shardscope.parsers.source import Source

TEXT = """HloModule m

%yes (y: f32[4]) -> f32[4] {
  %y = f32[4] parameter(0)
  ROOT %twice = f32[4] add(%y, %y)
}

%no (n: f32[4]) -> f32[4] {
  %n = f32[4] parameter(0)
  ROOT %same = f32[4] copy(%n)
}

%body (t: (s32[], f32[4])) -> (s32[], f32[4]) {
  %t = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %v = f32[4] get-tuple-element(%t), index=1
  %w = f32[4] negate(%v)
  ROOT %o = (s32[], f32[4]) tuple(%i, %w)
}

%condition (u: (s32[], f32[4])) -> pred[] {
  %u = (s32[], f32[4]) parameter(0)
  %j = s32[] get-tuple-element(%u), index=0
  %bound = s32[] constant(3)
  ROOT %less = pred[] compare(%j, %bound), direction=LT
}

ENTRY %main (p: pred[], a: f32[4], b: f32[4]) -> f32[4] {
  %p = pred[] parameter(0)
  %a = f32[4] parameter(1)
  %b = f32[4] parameter(2)
  %c = f32[4] conditional(%p, %a, %b), true_computation=%yes, false_computation=%no
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]) tuple(%zero, %c)
  %loop = (s32[], f32[4]) while(%init), condition=%condition, body=%body
  ROOT %g = f32[4] get-tuple-element(%loop), index=1
}
"""

MODULE = parse_module(Source("m", TEXT.encode()))
NAMED = {each.name: each for computation in MODULE.computations for each in computation.instructions}

Path = tuple[int, ...]


@pytest.mark.parametrize(
    ("name", "path", "calls", "uses"),
    [
        ("p", (), "", [None]),  # what decides is in neither branch
        ("a", (), "", [("y", (), "c")]),
        ("b", (), "", [("n", (), "c")]),
        ("y", (), "c", [("twice", 0), ("twice", 1)]),
        ("twice", (), "c", [("c", (), "")]),
        ("same", (), "c", [("c", (), "")]),
        ("n", (), "c", [("same", (), "c")]),
        ("c", (), "", [("init", (1,), "")]),
        ("init", (1,), "", [("t", (1,), "loop"), ("u", (1,), "loop")]),
        ("t", (1,), "loop", [("v", (), "loop")]),
        ("u", (1,), "loop", []),
        ("u", (0,), "loop", [("j", (), "loop")]),
        ("v", (), "loop", [("w", 0)]),
        ("w", (), "loop", [("o", (1,), "loop")]),
        ("loop", (1,), "", [("g", (), "")]),
        ("g", (), "", [None]),
    ],
)
def test_uses(name: str, path: Path, calls: str, uses: list[object]) -> None:
    found = HloFlow(MODULE).uses(HloValue(NAMED[name], path, called(calls)))
    assert [described(each) for each in found] == uses


def test_calls_that_are_too_deep_are_not_known() -> None:
    loops = (NAMED["loop"],) * (MAX_CALLS - 1)
    flow = HloFlow(MODULE)
    assert None not in list(flow.uses(HloValue(NAMED["init"], (1,), loops)))
    assert None in list(flow.uses(HloValue(NAMED["init"], (1,), (*loops, NAMED["loop"]))))


def called(names: str) -> tuple[Instruction, ...]:
    return tuple(NAMED[name] for name in names.split())


def described(found: HloUse | HloValue | None) -> object:
    match found:
        case HloUse():
            return found.instruction.name, found.position
        case HloValue():
            return found.instruction.name, found.path, " ".join(call.name for call in found.calls)
    return None
