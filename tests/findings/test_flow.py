"""Where arrays go, in HLO and in jaxprs: into calls, branches and loops, and out again."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from shardscope.inspector.communication.strategies import gradients_of
from shardscope.inspector.dataflow.hlo import MAX_CALLS, HloFlow, HloUse, HloValue
from shardscope.inspector.dataflow.jaxpr import At, JaxprFlow
from shardscope.inspector.dataflow.sources import Place, ValueFlow
from shardscope.inspector.findings.equations import Flow
from shardscope.inspector.findings.rules.ss10_wide_dtype_collective import _narrowed
from shardscope.inspector.ir.jaxpr import Equation, Jaxpr, JaxprProgram, ShardMap, Variable
from shardscope.inspector.ir.jaxpr_text import print_jaxpr
from shardscope.inspector.ir.types import JaxType
from shardscope.inspector.variance.held import Held, axes_of, join, value_of
from shardscope.inspector.variance.inference import Reading, infer
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

READINGS: tuple[Reading, ...] = ("types", "values")


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


COMBINED = """HloModule c

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %main (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4] parameter(0)
  %b = f32[4] parameter(1)
  %one = f32[4] all-reduce(%a), to_apply=%sum
  %two = (f32[4], f32[4]) all-reduce(%one, %b), to_apply=%sum
  %kept = (f32[4], f32[4]) opt-barrier(%two)
  %g = f32[4] get-tuple-element(%kept), index=1
  %h = f32[4] add(%one, %g)
  ROOT %out = (f32[4], f32[4]) tuple(%g, %h)
}
"""


PERMUTED = "collective-permute(%one, %b), source_target_pairs={{0,1},{1,0}}"

GATHERED = """HloModule g

ENTRY %main (p: pred[], a: f32[4], b: f32[4]) -> f32[8] {
  %p = pred[] parameter(0)
  %a = f32[4] parameter(1)
  %b = f32[4] parameter(2)
  %n = f32[4] negate(%b)
  %start = ((f32[4], f32[4]), (f32[8], f32[8])) all-gather-start(%a, %n), dimensions={0}
  %done = (f32[8], f32[8]) all-gather-done(%start)
  %one = f32[8] get-tuple-element(%done), index=0
  %two = f32[8] get-tuple-element(%done), index=1
  ROOT %chosen = f32[8] conditional(%p, %one, %two), true_computation=%yes, false_computation=%no
}

%yes (y: f32[8]) -> f32[8] {
  ROOT %y = f32[8] parameter(0)
}

%no (n: f32[8]) -> f32[8] {
  %m = f32[8] parameter(0)
  ROOT %same = f32[8] copy(%m)
}
"""


def test_walks_tell_combined_gathers_and_branches_apart() -> None:
    module = parse_module(Source("g", GATHERED.encode()))
    named = {each.name: each for computation in module.computations for each in computation.instructions}
    flow = ValueFlow(module)
    for name, arguments in (("one", "a"), ("two", "b"), ("y", "a"), ("m", "b"), ("chosen", "ab")):
        found = {(source.instruction.name, source.is_moved) for source in flow.sources(Place(named[name]))}
        assert found == {(argument, argument == "a") for argument in arguments}, name
    assert [each and each.name for each in flow.ends(Place(named["a"]))] == [None]


@pytest.mark.parametrize(
    ("name", "element", "after"),
    [
        ("a", None, [("one", None)]),  # of one operand it is the result, of several an element
        ("one", None, [("two", 0), ("h", None)]),
        ("b", None, [("two", 1)]),
        ("two", 0, [("kept", 0)]),
        ("two", 1, [("kept", 1)]),
        ("kept", 0, []),
        ("kept", 1, [("g", None)]),
        ("g", None, [("h", None), ("out", 0)]),
        ("h", None, [("out", 1)]),
        ("out", 1, [None]),
    ],
)
@pytest.mark.parametrize("combined", ["all-reduce(%one, %b), to_apply=%sum", PERMUTED])
def test_steps_through_combined_collectives(name: str, element: int | None, after: list[object], combined: str) -> None:
    """An element of the result is made of the operand of its position."""
    module = parse_module(Source("c", COMBINED.replace("all-reduce(%one, %b), to_apply=%sum", combined).encode()))
    named = {each.name: each for each in module.entry.instructions}  # type: ignore[union-attr]
    flow, found = HloFlow(module), list[object]()
    for use in flow.uses(HloValue(named[name], () if element is None else (element,))):
        made = flow.after(use) if isinstance(use, HloUse) else (use,)
        found += [
            (each.instruction.name, *(each.path or (None,))) if isinstance(each, HloValue) else None for each in made
        ]
    assert found == after


def jaxpr(inputs: str, equations: list[Equation], outputs: str) -> Jaxpr:
    return Jaxpr((), variables(inputs), tuple(equations), tuple(outputs.split()))


def variables(names: str) -> tuple[Variable, ...]:
    return tuple(Variable(name, JaxType("f32[4]")) for name in names.split())


def equation(outputs: str, primitive: str, inputs: str, *bodies: tuple[str, int], **options: object) -> Equation:
    return Equation(primitive, tuple(inputs.split()), variables(outputs), bodies=bodies, **options)  # type: ignore[arg-type]


NESTED = JaxprProgram(
    (),
    (
        jaxpr(
            "a b",
            [
                equation("c d", "jit", "b a", ("jaxpr", 1)),
                equation("e f", "scan", "a c d", ("jaxpr", 3), loop=(1, 1)),
                equation("g", "cond", "f a b", ("branches[0]", 4), ("branches[1]", 5)),
                equation("h", "jit", "g", ("jaxpr", 6)),
                equation("k", "jit", "a", ("jaxpr", 6)),
                equation("l", "while", "a b k", ("cond_jaxpr", 7), ("body_jaxpr", 8), loop=(1, 1)),
            ],
            "h k",
        ),
        jaxpr("p q", [equation("r", "jit", "q", ("jaxpr", 2))], "r p"),
        jaxpr("s", [equation("t", "neg", "s")], "t"),
        jaxpr("u v w", [equation("x", "add", "u v")], "x w"),
        jaxpr("y z", [], "y"),
        jaxpr("m n", [], "n"),
        jaxpr("o", [equation("i", "neg", "o")], "i"),
        jaxpr("j1 j2", [], "j1"),
        jaxpr("j3 j4", [], "j4"),
    ),
)


@pytest.mark.parametrize(
    ("jaxpr", "name", "operand", "outer"),
    [
        (1, "p", (0, "b"), (0, "b")),
        (1, "q", (0, "a"), (0, "a")),
        (2, "s", (1, "q"), (1, "q")),
        (2, "t", None, None),  # no input
        (3, "u", (0, "a"), (0, "a")),  # a constant of the loop
        (3, "v", None, None),  # carried: another one in each iteration
        (3, "w", None, (0, "d")),  # a slice of it
        (4, "z", (0, "b"), (0, "b")),
        (5, "m", (0, "a"), (0, "a")),
        (6, "o", None, None),  # called twice
        (7, "j1", (0, "a"), (0, "a")),
        (7, "j2", (0, "k"), None),  # carried, and handed on as it is
        (8, "j3", (0, "b"), (0, "b")),
        (8, "j4", (0, "k"), None),
        (0, "a", None, None),
    ],
)
def test_inputs_of_bodies(
    jaxpr: int, name: str, operand: tuple[int, str] | None, outer: tuple[int, str] | None
) -> None:
    flow = JaxprFlow(print_jaxpr(NESTED))
    for found, expected in ((flow.operand(At(jaxpr, name)), operand), (flow.outer(At(jaxpr, name)), outer)):
        assert found == (None if expected is None else At(*expected))


@pytest.mark.parametrize(
    ("equation", "inside"),
    [
        ("0.0", ["1 p", "1 q"]),
        ("0.1", ["3 u", "", ""]),  # what is carried changes, and of what is sliced there is another part
        ("0.2", ["", "4 y, 5 m", "4 z, 5 n"]),  # what decides is in no branch
        ("0.3", ["6 o"]),
        ("0.5", ["7 j1", "8 j3", "8 j4, 7 j2"]),
        ("2.0", [""]),
    ],
)
def test_operands_in_bodies(equation: str, inside: list[str]) -> None:
    flow = JaxprFlow(print_jaxpr(NESTED))
    found = [flow.inside(flow.by_id[equation], position) for position in range(len(inside))]
    assert [", ".join(f"{jaxpr} {name}" for jaxpr, name in each) for each in found] == inside


def test_inputs_of_bodies_that_were_reached_through_calls() -> None:
    """The last call leads out, and those before it are still to be left."""
    flow = JaxprFlow(print_jaxpr(NESTED))
    one, other = (flow.by_id[f"0.{number}"] for number in (3, 4))
    assert flow.operand(At(6, "o", (one,))) == At(0, "g")
    assert flow.operand(At(6, "o", (other,))) == At(0, "a")
    outermost, inner = flow.by_id["0.0"], flow.by_id["1.0"]
    assert flow.operand(At(2, "s", (outermost, inner))) == At(1, "q", (outermost,))
    assert flow.outer(At(2, "s", (outermost, inner))) == At(1, "q", (outermost,))
    assert flow.operand(At(1, "q", (outermost,))) == At(0, "a")


def test_kernels_differ_over_the_axes_that_they_ask_for() -> None:
    """Wherever in the kernel: in its own body, in a branch, in what that calls; no other axes."""
    for depth in range(4):
        calls = [equation("o", "cond", "i", ("branches[0]", 4 + number)) for number in range(depth)]
        chain = [jaxpr("i ref", [call], "o") for call in calls]
        asking = jaxpr("i ref", [equation("n", "axis_index", "", axes=("x",)), equation("o", "add", "i n")], "o")
        other = jaxpr("i", [equation("n", "axis_index", "", axes=("y",))], "n")
        mapped = ShardMap(("x", "y"), True, ((),), ((),), (("x", 2), ("y", 2)))
        outermost = jaxpr("a", [equation("b", "shard_map", "a", ("jaxpr", 1), shard_map=mapped)], "b")
        body = jaxpr("c", [equation("d", "pallas_call", "c", ("jaxpr", 3)), equation("e", "neg", "c")], "d")
        text = print_jaxpr(JaxprProgram((), (outermost, body, other, *chain, asking)))
        for reading in READINGS:
            results = infer(text, reading).results
            assert axes_of(results["1.0"][0], "varying") == ("x",)
            assert axes_of(results["1.1"][0], "varying") == ()


def called(names: str) -> tuple[Instruction, ...]:
    return tuple(NAMED[name] for name in names.split())


def described(found: HloUse | HloValue | None) -> object:
    match found:
        case HloUse():
            return found.instruction.name, found.position
        case HloValue():
            return found.instruction.name, found.path, " ".join(call.name for call in found.calls)
    return None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_several_origins_over_one_axis_the_first_that_says_most_counts(count: int) -> None:
    """To vary says more than to be a part of a sum, and to be sent more than to vary."""
    says: tuple[tuple[Any, int], ...] = (("unreduced", 0), ("reduced", 0), ("varying", 1), ("exchanged", 2))
    for states in product(says, repeat=count):
        held = [Held("x", state, (str(number), None)) for number, (state, _) in enumerate(states)]
        other = Held("a", "varying", ("a", 0))
        most = max(range(count), key=lambda number: states[number][1])
        assert value_of([*held, other]) == (other, held[most])
        assert join((each,) for each in held) == (held[most],)


SUMMED = """HloModule m, num_partitions=2

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %main (a: f32[4], b: f32[4], c: f32[4]) -> f32[4] {
  %a = f32[4] parameter(0)
  %b = f32[4] parameter(1)
  %c = f32[4] parameter(2)
  %first = f32[4] all-reduce(%a), replica_groups={{0,1}}, to_apply=%add
  %second = f32[4] all-reduce(%b), replica_groups={{0,1}}, to_apply=%add
  %between = f32[4] STEP
  ROOT %both = f32[4] add(%between, %second)
}
"""


@pytest.mark.parametrize(
    ("step", "is_linear"),
    [
        ("copy(%first)", True),
        ("negate(%first)", True),
        ("multiply(%first, %c)", True),
        ("multiply(%c, %first)", True),
        ("divide(%first, %c)", True),
        ("divide(%c, %first)", False),
        ("exponential(%first)", False),
        ("maximum(%first, %c)", False),
    ],
)
def test_sums_that_are_added_are_one_gradient(step: str, is_linear: bool) -> None:
    """As far as what is between is linear in the first, which numpy says: twice as much of it gives twice as much."""
    operation, operands = step.rstrip(")").replace("%", "").split("(")
    named: dict[str, Any] = {"copy": np.copy, "exponential": np.exp, "negate": np.negative}
    apply = named.get(operation) or getattr(np, operation)

    def result(first: float) -> float:
        return float(apply(*({"first": first, "c": 3.0}[name] for name in operands.split(", "))))

    assert (result(4.0) == 2 * result(2.0)) == is_linear
    module = parse_module(Source("s", SUMMED.replace("STEP", step).encode()))
    sums = [Place(each) for each in module.with_opcode({"all-reduce"})]
    found = gradients_of(ValueFlow(module), sums)
    assert (len({*found.values()}) == 1) == is_linear


def test_values_have_the_types_of_what_makes_them() -> None:
    small = Variable("s", JaxType("f32[]"))
    outer = Jaxpr((), variables("a"), (Equation("reduce_sum", ("a",), (small,)),), ("s",))
    flow = JaxprFlow(print_jaxpr(JaxprProgram((), (outer,))))
    assert flow.type_of(At(0, "s")) == small.type
    assert flow.type_of(At(0, "unknown")) is None


def test_results_without_an_operand_of_their_own_are_not_widened() -> None:
    """A damaged jaxpr may have more results than operands."""
    flow = Flow(print_jaxpr(JaxprProgram((), (jaxpr("a", [equation("b c d", "psum", "a")], "b c d"),))))
    for number in range(3):
        assert _narrowed(flow, flow.by_id["0.0"], number) is None


@pytest.mark.parametrize("groups", ["None", "((0, 1), (2, 3))", "((0, 1, 2, 3),)"])
def test_a_sum_in_groups_is_another_one_in_each(groups: str) -> None:
    """As of numbers that differ: unless there are no groups, nobody says that all devices have one sum."""
    params = (("axis_index_groups", groups),)
    summed = Equation("psum", ("n",), variables("o"), params, axes=("x",))
    body = jaxpr("i", [equation("n", "axis_index", "", axes=("x",)), summed], "o")
    mapped = ShardMap(("x",), False, ((),), ((("x", "varying"),),), (("x", 4),))
    outer = jaxpr("a", [equation("b", "shard_map", "a", ("jaxpr", 1), shard_map=mapped)], "b")
    results = infer(print_jaxpr(JaxprProgram((), (outer, body))), "values").results
    members = {"None": [[0, 1, 2, 3]], "((0, 1), (2, 3))": [[0, 1], [2, 3]]}.get(groups, [[0, 1, 2, 3]])
    sums = {sum(group) for group in members}
    varies = "x" in axes_of(results["1.1"][0], "varying")
    assert varies == (groups != "None")
    assert varies or len(sums) == 1
