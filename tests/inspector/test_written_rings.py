"""Permutes in small texts: rings, stages of pipelines, and what only brings values to other devices."""

from __future__ import annotations

import pytest

from .test_written_purposes import BACKWARD, DOT, FORWARD, INSERTED, LARGEST, SUM, found, named

RING = "{{0,1},{1,2},{2,3},{3,0}}"
LINE = "{{0,1},{1,2},{2,3}}"
BACK = "{{1,0},{2,1},{3,2},{0,3}}"
HALF = "{{0,1},{1,0},{2,2},{3,3}}"

LOOP = """%body (t: (s32[], f32[4,4], f32[4,4])) -> (s32[], f32[4,4], f32[4,4]) {
  %t = (s32[], f32[4,4], f32[4,4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %v = f32[4,4] get-tuple-element(%t), index=1
  %h = f32[4,4] get-tuple-element(%t), index=2
  %hh = f32[4,4] dot(%h, %h), DOT
  %p = f32[4,4] collective-permute(%v), source_target_pairs=PAIRSNAME
  %w = f32[4,4] STEP
  ROOT %o = (s32[], f32[4,4], f32[4,4]) tuple(%i, %w, %h)
}

%condition (u: (s32[], f32[4,4], f32[4,4])) -> pred[] {
  %u = (s32[], f32[4,4], f32[4,4]) parameter(0)
  %j = s32[] get-tuple-element(%u), index=0
  %bound = s32[] constant(4)
  ROOT %less = pred[] compare(%j, %bound), direction=LT
}

"""
ENTRY = """%a = f32[4,4] parameter(0)
%b = f32[4,4] parameter(1)
%zero = s32[] constant(0)
%init = (s32[], f32[4,4], f32[4,4]) tuple(%zero, %a, %b)
%loop = (s32[], f32[4,4], f32[4,4]) while(%init), condition=%condition, body=%body"""

PASSED_ON = ("copy(%p)", "add(%p, %v)", "add(%p, %hh)")
"""Values of the next step that are the received one, or to which something is added that was not sent."""

MULTIPLIED = (f"dot(%p, %p), {DOT}", f"dot(%p, %h), {DOT}")
"""Stages: what is sent next is computed from what was received."""

APART = ("negate(%v)", "copy(%h)", f"dot(%v, %h), {DOT}")
"""Values of the next step for which what was received is not used."""

STEPS = {
    **dict.fromkeys(PASSED_ON, "ring exchange"),
    **dict.fromkeys(MULTIPLIED, "pipeline"),
    **dict.fromkeys((*APART, "sort(%p), dimensions={0}"), "other"),
}


def looped(step: str, pairs: str = RING, name: str = "") -> str:
    """The strategy of a permute in a loop, by the value that is sent in the next step."""
    body = LOOP.replace("STEP", step).replace("DOT", DOT).replace("PAIRS", pairs).replace("NAME", name)
    return found(ENTRY, body)["p"]


@pytest.mark.parametrize("pairs", [RING, LINE])
@pytest.mark.parametrize("name", ["", f", {named(f'{BACKWARD}/ppermute')}"])
@pytest.mark.parametrize("step", STEPS)
def test_permutes_that_the_program_wrote(step: str, name: str, pairs: str) -> None:
    """Whatever their pairs are: stages multiply what they receive, a ring passes it on."""
    assert looped(step, pairs, name) == STEPS[step]


@pytest.mark.parametrize("pairs", [RING, LINE, HALF])
@pytest.mark.parametrize("step", STEPS)
def test_permutes_of_another_operation_go_around_or_bring_values_elsewhere(step: str, pairs: str) -> None:
    """In matmuls that overlap with gathers, what is received is passed on, and every device sends and receives."""
    is_around = pairs != LINE and step in PASSED_ON
    expected = "ring exchange" if is_around else "resharding"
    assert looped(step, pairs, f", {named('jit(f)/dot_general')}") == expected


@pytest.mark.parametrize("pairs", [RING, LINE, HALF])
@pytest.mark.parametrize("step", STEPS)
def test_rolls_of_what_a_loop_carries_are_shifts(step: str, pairs: str) -> None:
    """If no device keeps its own, and what is sent depends on what was received before."""
    is_shift = pairs != HALF and step not in APART
    for primitive in ("concatenate", "pad", "roll", "dynamic_update_slice") if step == "copy(%p)" else ("roll",):
        expected = STEPS[step] if is_shift else "resharding"
        assert looped(step, pairs, f", {named(f'jit(f)/{primitive}')}") == expected


@pytest.mark.parametrize("pairs", [RING, LINE, HALF])
@pytest.mark.parametrize("step", STEPS)
def test_permutes_without_a_name_that_the_partitioner_inserted(step: str, pairs: str) -> None:
    """They are shifts if every device sends to another one, and receives."""
    is_shift = pairs == RING and step not in APART
    assert looped(step, pairs, f", {INSERTED}") == (STEPS[step] if is_shift else "resharding")


CHAIN = """%a = f32[4,4] parameter(0)
%b = f32[4,4] parameter(1)
%one = f32[4,4] collective-permute(%a), source_target_pairs=FIRST
%x = f32[4,4] STEP
%two = f32[4,4] collective-permute(%x), source_target_pairs=SECOND
%t = (f32[4,4], f32[4,4]) tuple(%one, %two)"""


@pytest.mark.parametrize(("first", "second"), [(RING, RING), (BACK, RING)])
@pytest.mark.parametrize(
    ("step", "strategy"),
    [
        ("copy(%one)", "ring exchange"),
        ("add(%one, %b)", "ring exchange"),
        (f"dot(%one, %b), {DOT}", "pipeline"),
        (f"dot(%b, %a), {DOT}", "other"),
        ("copy(%b)", "other"),
        ("sort(%one), dimensions={0}", "other"),
    ],
)
def test_the_first_of_a_ring_is_one_of_its_permutes(step: str, strategy: str, first: str, second: str) -> None:
    """It sends what no other has sent, to the same devices; one that sends elsewhere is none of them."""
    text = CHAIN.replace("STEP", step).replace("FIRST", first).replace("SECOND", second)
    expected = strategy if first == second else "other"
    assert found(text) == {"one": expected, "two": expected}


@pytest.mark.parametrize(
    ("summed", "strategy"),
    [("%x", "pipeline"), ("%y", "pipeline"), ("%z", "tensor parallelism"), ("%n", "other"), ("%q", "other")],
)
@pytest.mark.parametrize("region", [SUM, LARGEST])
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_sum_of_what_stages_computed_is_of_their_pipeline(
    summed: str, strategy: str, region: str, is_staged: bool
) -> None:
    """`x` is sent on to the next stage, `y` is made of it, `z` is another product, `n` and `q` are none."""
    sent = "%x" if is_staged else "%b"
    text = f"""%a = f32[4,4] parameter(0)
        %b = f32[4,4] parameter(1)
        %one = f32[4,4] collective-permute(%a), source_target_pairs={RING}
        %x = f32[4,4] dot(%one, %b), {DOT}, {named("jit(f)/dot_general")}
        %y = f32[4,4] negate(%x)
        %z = f32[4,4] dot(%b, %b), {DOT}, {named("jit(f)/dot_general")}
        %n = f32[4,4] negate(%b)
        %q = f32[4,4] sort(%x), dimensions={{0}}
        %two = f32[4,4] collective-permute({sent}), source_target_pairs={RING}
        %s = f32[4,4] all-reduce({summed}), {region}, {named("jit(f)/dot_general")}
        %t = (f32[4,4], f32[4,4], f32[4,4]) tuple(%one, %two, %s)"""
    is_product = summed in ("%x", "%y", "%z")
    alone = "tensor parallelism" if is_product and region == SUM else "other"
    sums = "pipeline" if is_staged and strategy == "pipeline" else alone
    staged = "pipeline" if is_staged else "other"
    assert found(text) == {"one": staged, "two": staged, "s": sums}


@pytest.mark.parametrize("directions", [FORWARD, BACKWARD])
def test_a_permute_of_numbers_is_no_sum_of_numbers(directions: str) -> None:
    text = f"%a = f32[] parameter(0)\n%one = f32[] collective-permute(%a), source_target_pairs={RING}"
    assert found(f"{text}, {named(f'{directions}/ppermute')}") == {"one": "other"}
