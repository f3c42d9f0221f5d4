"""Purposes of sums that the compiler combined, by what is known of their parts, and totals of strategies."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from shardscope.inspector.communication.strategies import most_sent, strategies
from shardscope.inspector.load import load_bytes
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective, Report, SourcePosition
from shardscope.inspector.report.collectives import CollectivePart, Pass
from shardscope.inspector.report.communication import StrategyTotal

from .test_written_purposes import ALL, BACKWARD, FORWARD, REGIONS, SUM, named

MEANS: dict[Pass, str] = {
    "forward": "tensor parallelism",
    "backward": "gradient sync",
    "recompute": "other",
    "unknown": "other",
}
"""The strategy of a sum of products that goes to an output, by its pass."""

LARGE, SMALL = 100, 8


def read(body: str, computations: str = "") -> Report:
    *lines, last = [line.strip() for line in body.strip().splitlines()]
    text = "\n  ".join([*lines, f"ROOT {last}"])
    result = last.partition(" = ")[2].rpartition(" tuple(")[0]
    data = f"HloModule m, num_partitions=4\n\n{REGIONS}{computations}ENTRY %main () -> {result} {{\n  {text}\n}}\n"
    return inspect(load_bytes("f", data.encode()))


@pytest.fixture(scope="module")
def report() -> Report:
    """A sum of two products; other names say that the program was differentiated."""
    return read(f"""
        %a = f32[{LARGE},4] parameter(0)
        %b = f32[4] parameter(1)
        %c = f32[{SMALL},4] parameter(2)
        %x = f32[4] negate(%b), {named(f"{BACKWARD}/neg")}
        %one = f32[{LARGE}] dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        %two = f32[{SMALL}] dot(%c, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        %both = (f32[{LARGE}], f32[{SMALL}]) all-reduce(%one, %two), {SUM}
        %t = (f32[4], (f32[{LARGE}], f32[{SMALL}])) tuple(%x, %both)""")


def total(report: Report, **changes: object) -> StrategyTotal:
    (collective,) = report.collectives
    (found,) = strategies(report.program, [replace(collective, **changes)])  # type: ignore[arg-type]
    return found


def part(direction: Pass, *, of_gradients: bool = False) -> CollectivePart:
    return CollectivePart(None, SourcePosition(), None, direction=direction, of_gradients=of_gradients)  # type: ignore[arg-type]


@pytest.mark.parametrize("directions", product(MEANS, repeat=2), ids=" ".join)
def test_each_part_has_its_own_pass(report: Report, directions: tuple[Pass, Pass]) -> None:
    """The larger one says what both are for; the gradients among them are counted, whichever they are."""
    found = total(report, parts=tuple(map(part, directions)))
    assert found.strategy == MEANS[directions[0]]
    assert found.gradients == directions.count("backward")


@pytest.mark.parametrize("directions", product(("forward", "backward", "unknown"), repeat=3), ids=" ".join)
def test_parts_that_are_not_those_of_the_operands_are_of_each(report: Report, directions: tuple[Pass, ...]) -> None:
    for given in (directions, directions[:1]):
        expected = next((MEANS[each] for each in ("backward", "forward") if each in given), "other")
        assert total(report, parts=tuple(part(each) for each in given)).strategy == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("marks", product((False, True), repeat=2))
def test_sums_that_the_program_wrote_of_gradients(report: Report, marks: tuple[bool, bool]) -> None:
    parts = tuple(part("forward", of_gradients=mark) for mark in marks)
    assert total(report, parts=parts).strategy == MEANS["backward" if marks[0] else "forward"]
    assert total(report, parts=(*parts, parts[0])).strategy == MEANS["backward" if all(marks) else "forward"]
    changed = total(report, direction="forward", of_gradients=marks[0])
    assert changed.strategy == MEANS["backward" if marks[0] else "forward"]


@pytest.mark.parametrize("direction", MEANS)
@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.parametrize("op_name", [None, "jit(f)/add", f"{FORWARD}/dot_general", f"{BACKWARD}/dot_general"])
def test_what_is_only_divided_is_an_average(
    report: Report, direction: Pass, averages: bool, op_name: str | None
) -> None:
    """Unless it is a gradient; the pass is in the name where it is not known otherwise."""
    named_pass: Pass = (
        "unknown" if op_name in (None, "jit(f)/add") else "backward" if "transpose" in op_name else "forward"
    )  # type: ignore[operator]
    known = direction if direction != "unknown" else named_pass
    expected = "averages" if averages and known != "backward" else MEANS[known]
    assert total(report, direction=direction, averages=averages, op_name=op_name).strategy == expected


@pytest.fixture(scope="module")
def gathers() -> Report:
    return read(f"""
        %a = f32[4] parameter(0), {named("a")}
        %b = f32[40] parameter(1), {named("b")}
        %n = f32[400] parameter(2)
        %m = f32[400] sort(%n), dimensions={{0}}
        %one = f32[16] all-gather(%a), {ALL}, dimensions={{0}}
        %two = f32[160] all-gather(%b), {ALL}, dimensions={{0}}
        %three = f32[20] all-gather(%a), replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}
        %four = f32[400] all-reduce(%m), {SUM}
        %t = (f32[16], f32[160], f32[20], f32[400]) tuple(%one, %two, %three, %four)""")


def test_totals_are_those_of_the_collectives(gathers: Report) -> None:
    """Those that send most come first; what is gathered is named once."""
    sent: dict[str, int] = {each.name.lstrip("%"): each.wire_bytes or 0 for each in gathers.collectives}
    assert len(sent) == 4
    first, second = strategies(gathers.program, gathers.collectives)
    assert (first.kind, first.wire_bytes, first.arguments, first.gradients) == ("all-reduce", sent["four"], (), 0)
    assert (second.kind, second.strategy, second.arguments) == ("all-gather", "input gathers", ("a", "b"))
    assert second.wire_bytes == second.most_bytes == sent["one"] + sent["two"] + sent["three"]
    assert most_sent(gathers.program, gathers.collectives) == sum(sent.values())
    assert [total.kind for total in strategies(gathers.program, gathers.collectives[:3])] == ["all-gather"]
    assert strategies(gathers.program, ()) == ()


def test_what_is_not_known_of_one_is_not_known_of_all(gathers: Report) -> None:
    """Where only the executions are unknown there is still a most."""

    def changed(**fields: object) -> list[Collective]:
        one, *others = gathers.collectives
        return [replace(one, **fields), *others]  # type: ignore[arg-type]

    for given, is_bounded in (
        (changed(wire_bytes=None), False),
        (changed(executions=None, most_executions=None), False),
        (changed(executions=None, most_executions=1), True),
    ):
        found = {each.kind: each for each in strategies(gathers.program, given)}
        assert found["all-gather"].wire_bytes is None
        assert (found["all-gather"].most_bytes is not None) == is_bounded
        assert found["all-reduce"].wire_bytes is not None
        assert (most_sent(gathers.program, given) is not None) == is_bounded
    other_stage = [replace(each, stage="stablehlo") for each in gathers.collectives]
    assert strategies(gathers.program, other_stage) == ()


TAKEN = "jit(f)/update"
"""A name that is in no pass: the optimizer's."""


@pytest.mark.parametrize(
    ("one", "two", "strategy"),
    [
        (f"{BACKWARD}/mul", f"{BACKWARD}/sort", "tensor parallelism"),
        (f"{BACKWARD}/mul", TAKEN, "gradient sync"),  # elementwise, up to the optimizer
        (TAKEN, f"{BACKWARD}/mul", "tensor parallelism"),
        (TAKEN, TAKEN, "gradient sync"),
        (f"{BACKWARD}/mul", "params['w']", "tensor parallelism"),
        ("params['w']", TAKEN, "gradient sync"),
        (TAKEN, "", "gradient sync"),
    ],
)
def test_a_fusion_without_a_name_is_in_the_pass_of_what_is_fused(one: str, two: str, strategy: str) -> None:
    """Names of arguments say nothing, and names without a pass only where there are no others."""
    names = [f", {named(each)}" if each else "" for each in (one, two)]
    body = f"%m = f32[8] multiply(%q, %q){names[0]}\n  ROOT %k = f32[8] sort(%m), dimensions={{0}}{names[1]}"
    fused = f"%fused (q: f32[8]) -> f32[8] {{\n  %q = f32[8] parameter(0)\n  {body}\n}}\n\n"
    found = read(
        f"""
        %a = f32[8,4] parameter(0)
        %b = f32[4] parameter(1)
        %d = f32[8] dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {named(f"{BACKWARD}/mul")}
        %s = f32[8] all-reduce(%d), {SUM}, {named(f"{BACKWARD}/dot_general")}
        %f = f32[8] fusion(%s), kind=kLoop, calls=%fused
        %t = (f32[8]) tuple(%f)""",
        fused,
    )
    assert [each.strategy for each in found.communication] == [strategy]


@pytest.mark.parametrize(
    ("taker", "is_activation"),
    [
        (f"dot(%s, %b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}, {named(f'{BACKWARD}/mul')}", True),
        (f"reduce(%s, %k), dimensions={{0}}, to_apply=%sum, {named(f'{BACKWARD}/dot_general')}", True),
        (f"reduce(%s, %k), dimensions={{0}}, to_apply=%sum, {named(f'{BACKWARD}/mul')}", False),
        (f"dot(%s, %b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}, {named(TAKEN)}", False),
        (f"reduce(%s, %k), dimensions={{0}}, to_apply=%sum, {named(TAKEN)}", False),
    ],
)
def test_products_of_the_backward_pass_take_gradients_of_activations(taker: str, is_activation: bool) -> None:
    """By what they are or by their name; what is an output besides is a weight's gradient otherwise."""
    found = read(f"""
        %a = f32[4,4] parameter(0)
        %b = f32[4] parameter(1)
        %k = f32[] parameter(2)
        %d = f32[4] dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {named(f"{BACKWARD}/mul")}
        %s = f32[4] all-reduce(%d), {SUM}, {named(f"{BACKWARD}/dot_general")}
        %f = f32[] {taker}
        %t = (f32[4], f32[]) tuple(%s, %f)""")
    assert [each.strategy for each in found.communication] == [
        "tensor parallelism" if is_activation else "gradient sync"
    ]


@pytest.mark.parametrize(
    ("primitive", "strategy"),
    [
        ("dot_general", "tensor parallelism"),
        ("conv_general_dilated", "tensor parallelism"),
        ("reduce_sum", "reductions"),
        ("sort", "other"),
    ],
)
def test_small_products_are_sums_of_products(primitive: str, strategy: str) -> None:
    """XLA writes no dot for them, and the name says what they are."""
    found = read(f"""
        %a = f32[4,4] parameter(0)
        %k = f32[] parameter(1)
        %m = f32[4,4] multiply(%a, %a), {named(f"jit(f)/{primitive}")}
        %d = f32[4] reduce(%m, %k), dimensions={{0}}, to_apply=%sum, {named(f"jit(f)/{primitive}")}
        %s = f32[4] all-reduce(%d), {SUM}, {named(f"jit(f)/{primitive}")}
        %t = (f32[4]) tuple(%s)""")
    assert [each.strategy for each in found.communication] == [strategy]
