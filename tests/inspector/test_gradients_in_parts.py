"""Gradients of which several sums are parts, in small texts."""

from __future__ import annotations

import re

import pytest
from shardscope.inspector.communication.strategies import MAX_VALUES, gradients_of
from shardscope.inspector.dataflow.sources import Place

from .test_steps_of_values import flow_of

SUM = """%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %both = f32[] add(%x, %y)
}

"""

FUSED = "".join(
    f"""%{name} (p: f32[4], q: f32[4]) -> f32[4] {{
  %p.{name} = f32[4] parameter(0)
  %q.{name} = f32[4] parameter(1)
  ROOT %r.{name} = f32[4] {step.replace("%p", f"%p.{name}").replace("%q", f"%q.{name}")}
}}

"""
    for name, step in (("adding", "add(%p, %q)"), ("scaling", "multiply(%p, %q)"), ("second", "copy(%q)"))
)


@pytest.mark.parametrize(
    ("lines", "gradients"),
    [
        ("f32[4] add(%s0, %s1)", 1),
        ("f32[4] subtract(%c, %s0); f32[4] subtract(%s1, %z0)", 1),
        ("f32[4] add(%s0, %c); f32[4] add(%s1, %c)", 2),
        ("f32[4] multiply(%s0, %s1)", 2),
        ("f32[4] select(%p, %s0, %c); f32[4] add(%z0, %s1)", 1),
        ("f32[4] divide(%c, %s0); f32[4] add(%z0, %s1)", 2),
        ("f32[4] slice(%s0), slice={[0:4]}; f32[4] divide(%z0, %c); f32[4] add(%z1, %s1)", 1),
        ("f32[4] dynamic-slice(%s0, %i); f32[4] add(%z0, %s1)", 1),
        ("f32[4] dynamic-slice(%c, %s0); f32[4] add(%z0, %s1)", 2),
        ("f32[4] scatter(%s0, %i, %c), to_apply=%sum; f32[4] add(%z0, %s1)", 1),
        ("f32[4] scatter(%s0, %i, %s1), to_apply=%sum", 2),
        ("f32[4] fusion(%s0, %s1), calls=%adding", 1),
        ("f32[4] call(%s0, %s1), to_apply=%adding", 1),
        ("f32[4] fusion(%s0, %s1), calls=%scaling", 2),
        ("f32[4] fusion(%s0, %c), calls=%scaling; f32[4] add(%z0, %s1)", 1),
        ("f32[4] fusion(%c, %s0), calls=%second; f32[4] add(%z0, %s1)", 1),
        ("f32[4] fusion(%s0, %c), calls=%second; f32[4] add(%z0, %s1)", 2),
        ("(f32[4], f32[4]) tuple(%s0, %s1)", 2),
        ("(f32[4], f32[4]) tuple(%s0, %c); f32[4] get-tuple-element(%z0), index=0; f32[4] add(%z1, %s1)", 1),
        ("(f32[4], f32[4]) tuple(%s0, %c); f32[4] get-tuple-element(%z0), index=1; f32[4] add(%z1, %s1)", 2),
        ("(f32[4], f32[4]) tuple(%c, %s0); (f32[4], f32[4]) opt-barrier(%z0); "
         "f32[4] get-tuple-element(%z1), index=1; f32[4] add(%z2, %s1)", 1),
        ("f32[4] all-reduce(%s0), to_apply=%sum", 2),  # which is the same gradient once more
        ("f32[4] reduce-scatter(%s0), dimensions={0}, to_apply=%sum; f32[4] add(%z0, %s1)", 1),
        ("(f32[4], f32[4]) all-reduce(%s0, %s1), to_apply=%sum", 2),
        ("(f32[4], f32[4]) all-reduce(%c, %s0), to_apply=%sum; f32[4] get-tuple-element(%z0), index=1; "
         "f32[4] add(%z1, %s1)", 1),
    ],
)  # fmt: skip
def test_sums_that_are_parts_of_one_gradient(lines: str, gradients: int) -> None:
    """They are added to each other, scaled, masked, cut or moved; or one is added to what the other sums."""
    steps = "\n".join(f"%z{number} = {line}" for number, line in enumerate(lines.split("; ")))
    flow, named = flow_of(
        f"""%a = f32[4] parameter(0)
        %b = f32[4] parameter(1)
        %c = f32[4] parameter(2)
        %i = s32[] parameter(3)
        %p = pred[4] parameter(4)
        %s0 = f32[4] all-reduce(%a), to_apply=%sum
        %s1 = f32[4] all-reduce(%b), to_apply=%sum
        {steps}""",
        SUM + FUSED,
    )
    given = [each for each in named.values() if each.opcode in ("all-reduce", "reduce-scatter")]
    places = [
        Place(each, index if len(each.operands) > 1 else None) for each in given for index in range(len(each.operands))
    ]
    found = gradients_of(flow, places)
    roots = {(place.instruction.name, place.element): root for place, root in found.items()}
    assert len({roots["s0", None], roots["s1", None]}) == gradients
    for name, operands in re.findall(r"%(z\d) = .*? (?:all-reduce|reduce-scatter)\((.*?)\)", steps):
        several = operands.count("%") > 1
        for position, operand in enumerate(re.findall(r"%(\w+)", operands)):
            if operand in ("s0", "s1"):
                assert roots[name, position if several else None] == roots[operand, None]


@pytest.mark.parametrize("copies", [0, 1, MAX_VALUES - 1, MAX_VALUES, 2 * MAX_VALUES])
def test_sums_are_followed_through_so_many_values(copies: int) -> None:
    steps = "\n".join(f"%z{number + 1} = f32[4] copy(%z{number})" for number in range(copies))
    flow, named = flow_of(
        f"""%a = f32[4] parameter(0)
        %z0 = f32[4] all-reduce(%a), to_apply=%sum
        {steps}
        %other = f32[4] all-reduce(%a), to_apply=%sum
        %r = f32[4] add(%z{copies}, %other)""",
        SUM,
    )
    found = gradients_of(flow, [Place(named["z0"]), Place(named["other"])])
    assert len({*found.values()}) == (1 if copies < MAX_VALUES else 2)
