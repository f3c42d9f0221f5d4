"""The kind of work of an instruction: of a fusion, of what makes the elements of its result, and not of its indices."""

from __future__ import annotations

import pytest
from shardscope.inspector.dataflow.work import InstructionWork
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

OPERATIONS = {
    "moves": "f32[8] reverse(%a), dimensions={0}",
    "elementwise": "f32[8] exponential(%a)",
    "contraction": "f32[8] dot(%a, %a), lhs_contracting_dims={0}",
    "other": "f32[8] sort(%a), dimensions={0}",
}
ORDER = ("moves", "elementwise", "other", "contraction")
"""Of several in a fusion, the last of them counts."""


@pytest.mark.parametrize("one", OPERATIONS)
@pytest.mark.parametrize("other", OPERATIONS)
@pytest.mark.parametrize("calls", ["fusion", "call", "custom-call"])
def test_what_a_body_does(one: str, other: str, calls: str) -> None:
    body = "  %a = f32[8] parameter(0)\n  %i = s32[] parameter(1)\n"
    body += f"  %b = {OPERATIONS[one]}\n  ROOT %c = {OPERATIONS[other].replace('%a', '%b')}\n"
    attribute = {"fusion": "kind=kLoop, calls=%inner", "call": "to_apply=%inner"}.get(
        calls, f'custom_call_target="my_{one}"'
    )
    text = f"HloModule m\n\n%inner (a: f32[8], i: s32[]) -> f32[8] {{\n{body}}}\n\n"
    text += "ENTRY %e (p: f32[8], j: s32[]) -> f32[8] {\n"
    text += (
        f"  %p = f32[8] parameter(0)\n  %j = s32[] parameter(1)\n  ROOT %r = f32[8] {calls}(%p, %j), {attribute}\n}}\n"
    )
    module = parse_module(Source("m", text.encode()))
    assert module.entry is not None
    assert module.entry.root is not None
    work = InstructionWork(module)
    if calls == "custom-call":
        assert work.of(module.entry.root) == "other"
    else:
        assert work.of(module.entry.root) == max(one, other, key=ORDER.index)
        # The second parameter makes no element of the result.
        assert [maker and maker.name for maker, _ in work.data(module.entry.root)] == ["p"]
