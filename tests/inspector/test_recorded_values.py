"""Values that devices recorded: whose they are, which copies differ, and which of them should be the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import pytest
from shardscope.inspector.capture.model import Capture, Value
from shardscope.inspector.capture.protocol.values import Compared, Derivative, Difference, Gradients, Probe, Shard
from shardscope.inspector.ir.jaxpr import Equation, Jaxpr, JaxprProgram, ShardMap, Variable
from shardscope.inspector.ir.jaxpr_text import JaxprText, print_jaxpr
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import JaxType
from shardscope.inspector.report import SourcePosition, VariableVariance
from shardscope.inspector.report.elements import copies_differ, unequal_copies
from shardscope.inspector.report.gradients import wrong_gradients
from shardscope.inspector.values.probed import divergences, place_probes
from shardscope.parsers.source import Frame

TYPE = JaxType("f32[4]")


def probe(path: tuple[str, ...], when: str, position: int = 0, type: str = "f32[4]", *shards: tuple[str, str]) -> Probe:
    held = tuple(Shard(number, (number,), digest, part) for number, (part, digest) in enumerate(shards))
    return Probe(path, when, position, type, "float32", (4,), ("x",), held)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [(), ("0.1",)])
@pytest.mark.parametrize("type", ["f32[4]", "f32[4@x]", "f32[4]{U:x}", "f32[4]{unreduced={'x'}}"])
def test_copies_are_of_one_part_and_have_other_bits(path: tuple[str, ...], type: str) -> None:
    """By looking at all pairs; inside a shard_map parts are unknown, and of what is unreduced each has a summand."""
    each = list(product(("", "0:2", "2:4"), ("aa", "bb")))
    probes = [probe(path, "after", 0, type, *shards) for count in range(4) for shards in product(each, repeat=count)]
    expected = [
        any(
            one.part == other.part and one.digest != other.digest and (one.part != "" or not path)
            for one, other in combinations(found.shards, 2)
        )
        and "U:" not in type
        and "unreduced" not in type
        for found in probes
    ]
    assert [copies_differ(found) for found in probes] == expected
    assert unequal_copies(probes) == tuple(number for number, differs in enumerate(expected) if differs)


def equation(outputs: str, primitive: str, inputs: str, frame: int, **options: object) -> Equation:
    made = tuple(Variable(name, TYPE) for name in outputs.split())
    return Equation(primitive, tuple(inputs.split()), made, stack=(frame,), **options)  # type: ignore[arg-type]


def program(*, checked: bool = True, spec: tuple[str, ...] = ()) -> JaxprText:
    """`r, s` of two operands, of which the second comes out of a jit with two equations; all in a shard_map."""
    outputs = (tuple((axis, "varying") for axis in spec), ())
    mapped = ShardMap(("x", "y"), checked, ((),), outputs, (("x", 2), ("y", 2)))  # type: ignore[arg-type]
    body = (
        equation("p", "sin", "i", 1),
        equation("q", "jit", "p", 2, bodies=(("jaxpr", 2),)),
        equation("r s", "pair", "i q", 3, axes=("x",)),
    )
    inner = (equation("u", "neg", "t", 4), equation("w", "cos", "u", 5))
    outermost = equation("a b", "shard_map", "c", 0, bodies=(("jaxpr", 1),), shard_map=mapped)
    jaxprs = (
        Jaxpr((), (Variable("c", TYPE),), (outermost,), ("a", "b")),
        Jaxpr((), (Variable("i", TYPE),), body, ("r", "i")),
        Jaxpr((), (Variable("t", TYPE),), inner, ("w",)),
    )
    return print_jaxpr(JaxprProgram(tuple(Frame("f.py", "f", line) for line in range(1, 7)), jaxprs))


PATHS = {
    "p": (("0.0", "1.0"), 0),
    "q": (("0.0", "1.1"), 0),
    "r": (("0.0", "1.2"), 0),
    "s": (("0.0", "1.2"), 1),
    "u": (("0.0", "1.1", "2.0"), 0),
    "w": (("0.0", "1.1", "2.1"), 0),
}


def compared(text: str) -> tuple[Compared, ...]:
    """`p:x q:xy`: results, and the axes along which they differ."""
    found = []
    for each in text.split():
        name, _, axes = each.partition(":")
        path, position = PATHS[name]
        found.append(Compared(path, position, ("x", "y"), tuple(Difference(axis, (1,), (0, 3)) for axis in axes)))
    return tuple(found)


def stated(text: JaxprText, varying: str = "", unreduced: str = "") -> tuple[VariableVariance, ...]:
    """All results are the same on all devices, except for those in `varying` and `unreduced`, along x."""
    return tuple(
        VariableVariance(
            place.id,
            place.equation.primitive,
            output.name,
            output.type,
            ("x",) if output.name in varying else (),
            ("x",) if output.name in unreduced else (),
            (),
            SourcePosition.exact(text.stack(place.equation)),
            inferred=output.name == "u",
        )
        for place in text.equations
        for output in place.equation.outputs
    )


@pytest.mark.parametrize(
    ("differing", "found"),
    [
        ("p:", []),
        ("p:x", ["p x first"]),
        ("p:xy", ["p x first", "p y first"]),
        ("p:x q:x", ["p x first", "q x"]),
        ("q:x p:x", ["q x", "p x first"]),
        ("p:y q:x", ["p y first", "q x first"]),  # not along the same axis
        ("u:x q:x", ["u x first", "q x"]),  # the one inside of the other
        ("u:y q:x", ["u y first", "q x first"]),
        ("u:x w:x", ["u x first", "w x"]),
        ("p:x w:x", ["p x first", "w x"]),  # what is around it takes one
        ("p:x q:x s:x", ["p x first", "q x", "s x"]),
        ("r:x", ["r x first"]),
        ("r:x s:y", ["r x first", "s y first"]),
    ],
)
def test_what_differs_where_it_is_said_to_be_the_same(differing: str, found: list[str]) -> None:
    text = program()
    values = divergences(Capture(compared=compared(differing)), text, stated(text))
    assert [f"{each.value} {each.axis}{' first' if each.is_first else ''}" for each in values] == found
    for each in values:
        path, _ = PATHS[each.value]
        place = next(place for place in text.equations if place.id == path[-1])
        assert (each.equation, each.primitive, each.type) == (path[-1], place.equation.primitive, TYPE)
        assert (each.iteration, each.devices) == ((1,), (0, 3))
        assert each.declared == ("inferred" if each.value == "u" else "type")
        assert each.source == SourcePosition.exact((Frame("f.py", "f", place.equation.stack[0] + 1),))
    assert divergences(Capture(compared=compared(differing)), None, stated(text)) == ()


@pytest.mark.parametrize("name", PATHS)
def test_what_may_differ_is_no_surprise(name: str) -> None:
    text = program()
    everywhere = Capture(compared=compared(f"{name}:xy"))
    for variance in stated(text, varying=name), stated(text, unreduced=name):
        assert [(each.value, each.axis) for each in divergences(everywhere, text, variance)] == [(name, "y")]
    assert divergences(everywhere, text, ()) == ()


@pytest.mark.parametrize(
    ("path", "position"), [((), 0), (("0.0", "9.9"), 0), (("0.0", "1.0"), -1), (("0.0", "1.0"), 1), (("0.0", "1.2"), 2)]
)
def test_of_results_that_are_not_there_nothing_is_said(path: tuple[str, ...], position: int) -> None:
    text = program()
    capture = Capture(compared=(Compared(path, position, ("x",), (Difference("x", (), (0, 1)),)),))
    assert divergences(capture, text, stated(text)) == ()


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("spec", [(), ("x",), ("y",), ("x", "y")])
@pytest.mark.parametrize("differing", ["r:", "r:x", "r:y", "r:xy", "r:xz", "s:x", "p:x"])
def test_what_leaves_an_unchecked_shard_map_differs_along_its_spec_alone(
    checked: bool, spec: tuple[str, ...], differing: str
) -> None:
    """The first output is `r`, the second an input; `z` is no axis of the shard_map."""
    text = program(checked=checked, spec=spec)
    found = divergences(Capture(compared=compared(differing)), text, ())
    name, _, axes = differing.partition(":")
    expected = [axis for axis in axes if axis in "xy" and axis not in spec] if name == "r" and not checked else []
    assert [each.axis for each in found] == expected
    for each in found:
        assert (each.equation, each.primitive, each.value, each.type) == ("1.2", "pair", "r", TYPE)
        assert (each.declared, each.is_first, each.iteration, each.devices) == ("out_specs", True, (1,), (0, 3))
        assert each.source == SourcePosition.exact((Frame("f.py", "f", 4),))


@pytest.mark.parametrize(
    ("path", "when", "position", "name", "primitive"),
    [
        ((), "argument", 0, "w", ""),
        ((), "argument", 1, "x", ""),
        ((), "argument", 2, "argument 2", ""),
        ((), "argument", -1, "argument -1", ""),
        ((), "output", 0, "result", ""),
        ((), "output", 1, "output 1", ""),
        (("0.0", "1.2"), "before", 0, "i", "pair"),
        (("0.0", "1.2"), "before", 1, "q", "pair"),
        (("0.0", "1.2"), "before", 2, "", "pair"),
        (("0.0", "1.2"), "before", -1, "", "pair"),
        (("0.0", "1.2"), "after", 0, "r", "pair"),
        (("0.0", "1.2"), "after", 1, "s", "pair"),
        (("0.0", "1.2"), "after", 2, "", "pair"),
        (("0.0", "1.0"), "before", 0, "i", "sin"),
        (("0.0", "9.9"), "after", 0, "", ""),
    ],
)
def test_a_recorded_value_is_named_as_in_the_program(
    path: tuple[str, ...], when: str, position: int, name: str, primitive: str
) -> None:
    text = program()
    one = probe(path, when, position)
    capture = Capture(arguments=(Value("w", "f32[4]"), Value("x", "f32[4]")), outputs=(Value("result", ""),))
    for given in text, None:
        [found] = place_probes(Program(replace(capture, probes=(one,))), given, ())
        known = primitive if given is not None else ""
        assert (found.probe, found.type) == (one, TYPE)
        assert (found.name, found.primitive) == (name if known or not path else "", known)
        assert found.axes == (("x",) if known == "pair" else ())
        line = {"pair": 4, "sin": 2}.get(known)
        assert found.source == SourcePosition.exact((Frame("f.py", "f", line),) if line else ())


@pytest.mark.parametrize(
    ("slope", "difference", "spread", "factor"),
    [
        (1000.0, 1000.0, 0.0, ()),
        (1000.0, 999.0, 0.0, ()),  # a thousandth
        (1000.0, 998.5, 0.0, 1000 / 998.5),
        (998.5, 1000.0, 0.0, 0.9985),
        (-1000.0, -998.5, 0.0, 1000 / 998.5),
        (12.0, 2.0, 1.0, ()),  # ten times the spread
        (12.5, 2.0, 1.0, 6.25),
        (2.0, 12.5, 1.0, 0.16),
        (0.0, 0.0, 0.0, ()),
        (1e-9, 0.0, 0.0, None),
        (0.0, 1e-9, 0.0, 0.0),
        (9.9e-10, 0.0, 0.0, ()),  # rounding
        (0.0, -9.9e-10, 0.0, ()),
        (1e6, 1.0, 0.0, None),  # a millionth is nothing
        (1e6, 1.5, 0.0, 1e6 / 1.5),
        (1e6, -1.5, 0.0, -1e6 / 1.5),
    ],
)
def test_how_far_a_gradient_may_be_off(
    slope: float, difference: float, spread: float, factor: float | tuple[()] | None
) -> None:
    """The factor of a wrong one, None if the true one is zero; nothing if it is right."""
    each = Derivative("f", "x", slope, difference, spread, None, 0)
    found = [wrong.factor for wrong in wrong_gradients(Gradients((each,), None))]
    assert found == ([] if factor == () else [pytest.approx(factor) if isinstance(factor, float) else None])
