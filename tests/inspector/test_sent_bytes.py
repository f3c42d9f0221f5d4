"""Purposes and most bytes of collectives in texts that are written so that only one answer is right."""

from __future__ import annotations

import pytest
from shardscope.inspector.communication.strategies import most_sent
from shardscope.inspector.load import load_bytes
from shardscope.inspector.pipeline import inspect

SUM = """HloModule m, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

"""
GROUPS = "replica_groups={{0,1,2,3}}, to_apply=%add"

COMBINED = (
    SUM
    + """ENTRY %main (a: f32[], b: f32[SIZE]) -> (f32[], f32[SIZE]) {
  %a = f32[] parameter(0)
  %b = f32[SIZE] parameter(1)
  ROOT %both = (f32[], f32[SIZE]) all-reduce(%a, %b), GROUPS, metadata={op_name="jit(f)/transpose(jvp(f))/dot_general"}
}
"""
)

BRANCHES = (
    SUM
    + """%few (a: f32[8]) -> f32[8] {
  %a = f32[8] parameter(0)
  ROOT %one = f32[8] all-reduce(%a), GROUPS
}

%many (b: f32[8]) -> f32[8] {
  %b = f32[8] parameter(0)
  %two = f32[8] all-reduce(%b), GROUPS
  %wide = f32[16] concatenate(%two, %two), dimensions={0}
  %three = f32[16] all-reduce(%wide), GROUPS
  ROOT %part = f32[8] slice(%three), slice={[0:8]}
}

ENTRY %main (p: pred[], a: f32[8]) -> f32[8] {
  %p = pred[] parameter(0)
  %a = f32[8] parameter(1)
  %first = f32[8] all-reduce(%a), GROUPS
  ROOT %taken = f32[8] conditional(%p, %first, %first), true_computation=%TRUE, false_computation=%FALSE
}
"""
)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_arrays_among_numbers_are_no_numbers(size: int) -> None:
    """A gradient of two elements is as good as one of a thousand."""
    text = COMBINED.replace("SIZE", str(size)).replace("GROUPS", GROUPS)
    found = inspect(load_bytes("f", text.encode())).communication
    assert [each.strategy for each in found] == ["scalar reductions" if size == 1 else "gradient sync"]


@pytest.mark.parametrize(
    ("branches", "elements"), [(("few", "many"), 8 + 24), (("many", "few"), 8 + 24), (("few", "few"), 8 + 8)]
)
def test_of_branches_the_one_that_sends_most_counts(branches: tuple[str, str], elements: int) -> None:
    """A ring of four devices sends one and a half times of what is summed."""
    text = BRANCHES.replace("GROUPS", GROUPS).replace("TRUE", branches[0]).replace("FALSE", branches[1])
    report = inspect(load_bytes("f", text.encode()))
    assert most_sent(report.program, report.collectives) == 4 * elements * 3 // 2
