"""Variance in small programs that are written out, with the devices' values worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from shardscope.inspector.ir.jaxpr import Equation, Jaxpr, JaxprProgram, ShardMap, Variable
from shardscope.inspector.ir.jaxpr_text import JaxprText, print_jaxpr
from shardscope.inspector.ir.types import JaxType
from shardscope.inspector.report import VariableVariance
from shardscope.inspector.variance import inference
from shardscope.inspector.variance.entry_chain import entry_chains
from shardscope.inspector.variance.inference import Reading, infer
from shardscope.inspector.variance.variables import variance_of
from shardscope.parsers.source import Frame

from tests.findings.test_flow import equation, jaxpr, variables

OVER_X = (("x", "varying"),)
OVER_Y = (("y", "varying"),)


def mapped(inputs: Sequence[object], *, outputs: Sequence[object] = (), checked: bool = False) -> ShardMap:
    return ShardMap(
        ("x", "y"), checked, tuple(inputs), tuple(outputs), (("x", 2), ("y", 2)), ("f", "g", "h")[: len(inputs)]
    )  # type: ignore[arg-type]


def program(body: Jaxpr, *others: Jaxpr, outside: Sequence[Equation] = (), inputs: str = "a b c") -> JaxprText:
    """A shard_map of three arguments over x, over y, and over none; `others` are numbered from 2."""
    specs = mapped((OVER_X, OVER_Y, ()))
    around = equation("o", "shard_map", inputs, ("jaxpr", 1), shard_map=specs)
    return print_jaxpr(JaxprProgram((), (jaxpr("a b c", [around, *outside], "o"), body, *others)))


def axes(text: JaxprText, reading: Reading) -> dict[str, str]:
    """The axes over which each equation's first result is held, and how, `!` where it was exchanged."""
    found = infer(text, reading).results
    marks = {"varying": "", "exchanged": "!"}
    return {id: " ".join(f"{h.axis}{marks.get(h.state, '?')}" for h in values[0]) for id, values in found.items()}


WAYS = program(
    jaxpr(
        "p q r",
        [
            equation("u", "sin", "p"),
            equation("v w", "jit", "u q", ("jaxpr", 2)),
            equation("n", "axis_index", "", axes=("x",)),
            equation("s", "add", "r n"),
            equation("d", "cond", "r q u", ("branches[0]", 3), ("branches[1]", 4)),
            equation("f g", "scan", "q r u", ("jaxpr", 5), loop=(1, 1)),
            equation("h", "while", "q u r", ("cond_jaxpr", 6), ("body_jaxpr", 7), loop=(1, 1)),
            equation("t", "psum", "w", axes=("x",)),
            equation("m", "mul", "t s"),
            equation("l", "shard_map", "q u", ("jaxpr", 8), shard_map=mapped(((), OVER_Y))),
            equation("e", "add", "2.0:f32[] u"),
        ],
        "s",
    ),
    jaxpr("i j", [equation("k", "cos", "j"), equation("k2", "tan", "i")], "k k2"),
    jaxpr("i2 j2", [equation("b1", "exp", "j2")], "b1"),
    jaxpr("i3 j3", [equation("b2", "neg", "i3")], "b2"),
    jaxpr("kq kr ku", [equation("z1", "mul", "kr ku"), equation("z2", "mul", "kq ku")], "z1 z2"),
    jaxpr("cu cr", [], "cr"),
    jaxpr("bu br", [equation("y1", "mul", "br bu")], "y1"),
    jaxpr("mq mu", [equation("m1", "neg", "mq"), equation("m2", "mul", "m1 mu")], "m2"),
)
"""Calls, branches, loops and a shard_map in a shard_map, one after another."""


@pytest.mark.parametrize(
    ("value", "axis", "by", "way"),
    [
        ("u", "x", "in_specs[0]", "u"),
        ("v", "y", "in_specs[1]", "v"),
        ("w", "x", "in_specs[0]", "u w"),
        ("k", "y", "in_specs[1]", "k"),  # from outside of the called function
        ("k2", "x", "in_specs[0]", "u k2"),
        ("n", "x", "axis_index", "n"),
        ("s", "x", "axis_index", "n s"),
        ("b1", "x", "in_specs[0]", "u b1"),  # the first operand of a branch decides which
        ("b2", "y", "in_specs[1]", "b2"),
        ("z2", "y", "in_specs[1]", "z2"),
        ("z2", "x", "in_specs[0]", "u z2"),
        ("g", "y", "in_specs[1]", "g"),
        ("g", "x", "in_specs[0]", "u g"),
        ("y1", "x", "in_specs[0]", "y1"),  # out of a loop nothing is followed
        ("m", "x", "axis_index", "n s m"),  # t is a sum over x
        ("m1", "y", "in_specs[1]", "m1"),
        ("m2", "x", "in_specs[0]", "u m2"),
        ("m2", "y", "in_specs[1]", "m1 m2"),
        ("e", "x", "in_specs[0]", "u e"),
    ],
)
def test_the_way_of_an_axis(value: str, axis: str, by: str, way: str) -> None:
    (found,) = (each for each in variance_of(WAYS) if each.value == value)
    (entry,) = (each for each in found.entered if each.axis == axis)
    assert entry.by == by
    assert " ".join(each.value for each in entry_chains(WAYS).of(found, entry)) == way


def ways(text: JaxprText, value: str) -> list[str]:
    (found,) = (each for each in variance_of(text) if each.value == value)
    return [" ".join(each.value for each in entry_chains(text).of(found, entry)) for entry in found.entered]


def test_the_shortest_way_counts_and_only_from_the_input_that_entered_first() -> None:
    body = jaxpr("p q r", [equation("u", "neg", "p"), equation("v", "neg", "u"), equation("w", "add", "v p u")], "w")
    assert ways(program(body), "w") == ["w"]
    text = program(jaxpr("p q r", [equation("u", "neg", "p"), equation("w", "add", "u q")], "w"), inputs="b a a")
    specs = mapped((OVER_X, OVER_X, OVER_X))
    around = equation("o", "shard_map", "b a a", ("jaxpr", 1), shard_map=specs)
    text = print_jaxpr(JaxprProgram((), (jaxpr("a b", [around], "o"), text.program.jaxprs[1])))
    assert ways(text, "w") == ["u w"]


def test_values_that_share_a_name_have_no_way() -> None:
    """Older JAX calls all values that are not used `_`: only of the last is it known what it is made of."""
    equations = [equation("u", "neg", "p"), equation("_", "sin", "u"), equation("_", "cos", "u")]
    text = program(jaxpr("p q r", equations, "u"))
    first, last = (each for each in variance_of(text) if each.value == "_")
    assert [each.primitive for each in entry_chains(text).of(first, *first.entered)] == ["sin"]
    assert [each.primitive for each in entry_chains(text).of(last, *last.entered)] == ["neg", "cos"]


def test_a_shard_map_with_fewer_operands_than_inputs() -> None:
    """Of a damaged capture."""
    text = program(jaxpr("p q r", [equation("u", "neg", "p"), equation("w", "add", "r q u")], "w"), inputs="a")
    assert ways(text, "w") == ["u w"]


RESHARDED = mapped((OVER_X, OVER_Y, ()), outputs=(OVER_X, OVER_X, ()))


def passed_on(spec: object, mesh: str = "m", type: str = "f32[4]") -> JaxprText:
    """Two shard_maps; the first sums over x, and gives the sum and what it is of to the other, which takes one."""
    around = Equation(
        "shard_map",
        ("a", "b", "c"),
        variables("o1 o2"),
        (("mesh", "m"),),
        bodies=(("jaxpr", 1),),
        shard_map=RESHARDED,
    )
    second = Equation(
        "shard_map",
        ("o1",),
        variables("o3"),
        (("mesh", mesh),),
        bodies=(("jaxpr", 2),),
        shard_map=mapped((spec,)),
    )
    body = jaxpr("p q r", [equation("s", "psum", "p", axes=("x",)), equation("n", "neg", "q")], "s n")
    other = Jaxpr((), (Variable("t", JaxType(type)),), (equation("l", "neg", "t"),), ("l",))
    return print_jaxpr(JaxprProgram((), (jaxpr("a b c", [around, second], "o3"), body, other)))


@pytest.mark.parametrize(
    ("text", "by_values"),
    [
        (passed_on(OVER_X), ""),  # each device gets back the sum that it had
        (passed_on(OVER_Y), "y"),
        (passed_on(OVER_X, mesh="other"), "x"),
        (passed_on(OVER_X, type="f32[2]"), "x"),
    ],
)
def test_what_is_passed_on_unchanged(text: JaxprText, by_values: str) -> None:
    assert axes(text, "values")["2.0"] == by_values
    assert axes(text, "types")["2.0"] == (by_values or "x")


LOOPED = [
    equation("s", "scan", "p r q", ("jaxpr", 2), loop=(1, 1)),
    equation("w", "while", "p q r", ("cond_jaxpr", 3), ("body_jaxpr", 4), loop=(1, 1)),
    equation("c", "cond", "p q", ("branches[0]", 5)),
]
BODIES = (
    jaxpr("k1 k2 k3", [equation("k4", "psum", "k1", axes=("x",))], "k4 k3"),
    jaxpr("l1 l2", [], "l1"),
    jaxpr("m1 m2", [], "m2"),
    jaxpr("n1", [equation("n2", "psum", "n1", axes=("y",))], "n2"),
)


@pytest.mark.parametrize(
    ("number", "values", "types"),
    [
        (0, "", ""),  # carried from one iteration to the next is a sum over x
        (1, "x", ""),  # each device along x leaves it at another iteration
        (2, "x", ""),  # each may take another branch, of one
    ],
)
def test_what_a_loop_or_branch_gives(number: int, values: str, types: str) -> None:
    text = program(jaxpr("p q r", [LOOPED[number]], ""), *BODIES)
    assert axes(text, "values")["1.0"] == values
    assert axes(text, "types")["1.0"] == types


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (equation("s", "scan", "p r q", ("jaxpr", 5)), "x y"),
        (equation("s", "scan", "p r q", ("other", 2), loop=(1, 1)), "x y"),
        (equation("w", "while", "p q r", ("cond_jaxpr", 3), ("body_jaxpr", 4)), "x y"),
        (equation("w", "while", "p q r", ("cond_jaxpr", 3), loop=(1, 1)), "x y"),
        (equation("c", "cond", "p q"), "x y"),
        (equation("c", "cond", "", ("branches[0]", 5)), ""),
        (equation("j", "jit", "p q", ("jaxpr", 5)), "x y"),  # it has one input
    ],
)
def test_what_cannot_be_followed_depends_on_all_operands(made: Equation, given: str) -> None:
    """Of an older or damaged capture: bodies are missing, or what of the operands they get."""
    text = program(jaxpr("p q r", [made], ""), *BODIES)
    for reading in ("types", "values"):
        assert axes(text, reading)["1.0"] == given


NOT_FOLLOWED = [
    (equation("s", "scan", "p r q", ("jaxpr", 2), loop=(1, 1)), ""),
    (equation("w", "while", "p q r", ("cond_jaxpr", 3), ("body_jaxpr", 4), loop=(1, 1)), "x"),
    (equation("c", "cond", "r q", ("branches[0]", 5)), ""),
    (equation("j", "jit", "q", ("jaxpr", 5)), ""),
]


@pytest.mark.parametrize(("made", "followed"), NOT_FOLLOWED)
@pytest.mark.parametrize("limit", ["MAX_DEPTH", "MAX_CALLS"])
def test_calls_beyond_a_limit_are_opaque(
    made: Equation, followed: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function is one call, and its shard_map another one."""
    joined = " ".join(axis for axis, name in (("x", "p"), ("y", "q")) if name in made.inputs)
    for most in (1, 2):
        monkeypatch.setattr(inference, limit, most)
        text = program(jaxpr("p q r", [made], ""), *BODIES)
        assert axes(text, "values")["1.0"] == (followed if most == 2 else joined)


def test_calls_one_after_another_are_not_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "MAX_DEPTH", 2)
    calls = [equation(f"j{each}", "jit", name, ("jaxpr", 5)) for each, name in enumerate(("q", "p", "r"))]
    calls += [equation("n", "jit", "q", ("jaxpr", 6))]
    nested = jaxpr("o1", [equation("o2", "jit", "o1", ("jaxpr", 5))], "o2")
    assert axes(program(jaxpr("p q r", calls, ""), *BODIES, nested), "values") == {
        "5.0": "x", "1.0": "", "1.1": "x", "1.2": "", "6.0": "y", "1.3": "y"
    }  # fmt: skip


GROUPS = (("axis_index_groups", "((0, 1),)"),)


@pytest.mark.parametrize(
    ("made", "exchanged"),
    [
        (equation("e", "neg", "r"), ""),
        (equation("e", "ppermute", "r", axes=("y",)), "y!"),
        (equation("e", "psum", "r", axes=("y",)), ""),
        (equation("e", "psum", "r", axes=("y",), params=GROUPS), "y!"),
        (equation("e", "all_to_all", "r", axes=("y",)), "y"),
        (equation("e", "all_to_all", "r", axes=("y",), params=GROUPS), "y"),
        (equation("e", "pallas_call", "r"), "x! y!"),
        (equation("e", "ffi_call", "r"), "x! y!"),
        (equation("e", "pure_callback", "r"), "x! y!"),
    ],
)
def test_what_is_sent_from_device_to_device(made: Equation, exchanged: str) -> None:
    """Such values may be equal by chance, and those of kernels and calls that may do anything."""
    text = program(jaxpr("p q r", [made], ""), outside=[equation("k", "pallas_call", "a")])
    assert axes(text, "blocks") == {"1.0": exchanged}
    assert "!" not in axes(text, "values")["1.0"]


def test_equations_without_a_check_and_the_lines_of_values() -> None:
    frames = tuple(Frame(f"{name}.py", name, line) for line, name in enumerate("fgh", 7))
    both = [equation("u", "psum", "p", axes=("x",), stack=(1, 0)), equation("v", "neg", "u", stack=(2,))]
    checks = [
        equation(f"o{each}", "shard_map", "a", ("jaxpr", 1 + each), shard_map=mapped((OVER_X,), checked=bool(each)))
        for each in (0, 1)
    ]
    bodies = (jaxpr("p", both[:1], "u"), jaxpr("p", both, "v"))
    text = print_jaxpr(JaxprProgram(frames, (jaxpr("a", checks, ""), *bodies)))
    assert infer(text, "types").unchecked == {"1.0"}
    found: dict[str, VariableVariance] = {each.equation: each for each in variance_of(text)}
    assert {id: each.source.stack for id, each in found.items()} == {
        "1.0": (frames[1], frames[0]), "2.0": (frames[1], frames[0]), "2.1": (frames[2],)
    }  # fmt: skip
    assert [found[id].left for id in ("1.0", "2.0", "2.1")] == [("x",), ("x",), ()]


def test_types_without_a_shard_map() -> None:
    """Captures once recorded none of them, and only the types in their bodies."""
    typed = Variable("u", JaxType("f32[4]{V:x}"), ("x",), (), ())
    plain = equation("v", "neg", "u")
    text = print_jaxpr(JaxprProgram((), (jaxpr("a", [Equation("neg", ("a",), (typed,)), plain], "v"),)))
    (found,) = variance_of(text)
    assert (found.value, found.varying, found.unreduced, found.reduced) == ("u", ("x",), (), ())
    assert (found.inferred, found.entered) == (False, ())


def test_types_say_more_than_values() -> None:
    """What is gathered is typed as varying, and is the same everywhere; both are said, with where they are from."""
    typed = Variable("g", JaxType("f32[8]{V:x,U:y,R:z}"), ("x",), ("y",), ("z",))
    gathered = Equation("all_gather", ("p",), (typed,), axes=("x",))
    around = equation("o", "shard_map", "a", ("jaxpr", 1), shard_map=mapped((OVER_X,), checked=True))
    (found,) = variance_of(print_jaxpr(JaxprProgram((), (jaxpr("a", [around], "o"), jaxpr("p", [gathered], "g")))))
    assert (found.varying, found.unreduced, found.reduced) == (("x",), ("y",), ("z",))
    assert [(each.axis, each.by) for each in found.entered] == [("x", "in_specs[0]")]
    assert (found.hidden, found.left) == ((), ())
