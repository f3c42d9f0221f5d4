"""Purposes and most bytes of collectives in texts that are written so that only one answer is right."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from shardscope.inspector.communication import strategies
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


PRODUCTS = (
    SUM
    + """ENTRY %main (a: f32[A,4], b: f32[4], c: f32[B,4], d: f32[B]) -> (f32[A], f32[]) {
  %a = f32[A,4] parameter(0)
  %b = f32[4] parameter(1)
  %c = f32[B,4] parameter(2)
  %d = f32[B] parameter(3)
  %one = f32[A] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="ONE"}
  %two = f32[B] dot(%c, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="TWO"}
  %both = (f32[A], f32[B]) all-reduce(%one, %two), GROUPS, metadata={op_name="BOTH"}
  %first = f32[A] get-tuple-element(%both), index=0
  %second = f32[B] get-tuple-element(%both), index=1
  %more = f32[] dot(%second, %d), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="MORE"}
  ROOT %out = (f32[A], f32[], f32[B]) tuple(%first, %more, LAST)
}
"""
)

FORWARD, BACKWARD = "jit(f)/jvp(f)/dot_general", "jit(f)/transpose(jvp(f))/dot_general"
MEANS = {FORWARD: "tensor parallelism", BACKWARD: "gradient sync"}


def strategy_of(one: str, two: str, both: str, sizes: tuple[int, int], more: str, last: str) -> str:
    text = PRODUCTS.replace("[A", f"[{sizes[0]}").replace("[B", f"[{sizes[1]}").replace("GROUPS", GROUPS)
    text = text.replace("BOTH", both).replace("ONE", one).replace("TWO", two).replace("MORE", more)
    (found,) = inspect(load_bytes("f", text.replace("LAST", last).encode())).communication
    return found.strategy


@pytest.mark.parametrize("sizes", [(100, 8), (8, 100), (8, 8)])
@pytest.mark.parametrize("two", MEANS)
@pytest.mark.parametrize("one", MEANS)
def test_of_two_sums_the_larger_says_what_both_are_for(one: str, two: str, sizes: tuple[int, int]) -> None:
    """Each by its own name if there are two, by the only one, or by those of the products that are summed."""
    for both, parts in ((f"{one};{two}", (one, two)), (one, (one, one)), ("jit(f)", (one, two)), ("", (one, two))):
        strategies = [MEANS[part] for part in parts]
        largest = strategies[0] if sizes[0] > sizes[1] or len(set(strategies)) == 1 else strategies[1]
        expected = "other" if sizes[0] == sizes[1] and len(set(strategies)) > 1 else largest
        assert strategy_of(one, two, both, sizes, "jit(f)/add", "%second") == expected


@pytest.mark.parametrize(
    ("more", "last", "strategy"),
    [
        (BACKWARD, "%d", "tensor parallelism"),  # the gradient of an activation, from which others are computed
        (BACKWARD, "%second", "tensor parallelism"),
        ("jit(f)/update", "%d", "gradient sync"),
        ("jit(f)/update", "%second", "gradient sync"),
    ],
)
def test_what_backward_products_take_is_no_gradient_of_a_weight(more: str, last: str, strategy: str) -> None:
    assert strategy_of(BACKWARD, BACKWARD, "", (8, 100), more, last) == strategy


BESIDE = (
    SUM
    + """ENTRY %main (a: f32[8,8], w: f32[8,8]) -> (f32[8,8], f32[8,8]) {
  %a = f32[8,8] parameter(0)
  %w = f32[8,8] parameter(1)
  %d = f32[8,8] dot(%a, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general"}
  %first = f32[8,8] all-reduce(%d), GROUPS, metadata={op_name="jit(f)/dot_general"}
  %e = f32[8,8] sine(%w), metadata={op_name="jit(f)/sin"}
  %second = f32[8,8] all-reduce(%e), GROUPS, metadata={op_name="jit(f)/sin"}
  ROOT %t = (f32[8,8], f32[8,8]) tuple(%first, %second)
}
"""
)


@pytest.mark.parametrize("effect", ["sum", "gather", "move"])
@pytest.mark.parametrize("needed", [False, True])
def test_what_is_summed_beside_partial_sums_of_products(
    effect: str, needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums along the same axes are of the same strategy, but for gradients of weights and what only moves values."""
    cause = SimpleNamespace(effect=effect, needed=needed, primitive="sin")
    monkeypatch.setattr(strategies, "causes_of", lambda *_: (cause,))
    found = inspect(load_bytes("f", BESIDE.replace("GROUPS", GROUPS).encode())).communication
    counts = {each.strategy: len(each.collectives) for each in found}
    belongs = effect == "sum" and not needed
    assert counts == ({"tensor parallelism": 2} if belongs else {"tensor parallelism": 1, "other": 1})
