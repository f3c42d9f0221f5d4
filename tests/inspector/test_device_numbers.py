"""Integers that devices compute from their positions, against JAX's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from jax import lax
from shardscope.inspector.dataflow.device_integers import MAX_DEPTH, MAX_EVALUATED, Numbers, _apply
from shardscope.inspector.dataflow.jaxpr import At, JaxprFlow
from shardscope.inspector.ir.jaxpr import Equation, Jaxpr, JaxprProgram, Variable
from shardscope.inspector.ir.jaxpr_text import print_jaxpr
from shardscope.inspector.ir.types import JaxType

NUMBERS = (-7, -2, -1, 0, 1, 3, 8)

OPERATIONS: dict[str, tuple[int, Callable[..., object]]] = {
    "add": (2, lax.add),
    "sub": (2, lax.sub),
    "mul": (2, lax.mul),
    "max": (2, lax.max),
    "min": (2, lax.min),
    "lt": (2, lax.lt),
    "le": (2, lax.le),
    "gt": (2, lax.gt),
    "ge": (2, lax.ge),
    "eq": (2, lax.eq),
    "ne": (2, lax.ne),
    "and": (2, lax.bitwise_and),
    "or": (2, lax.bitwise_or),
    "div": (2, lax.div),
    "rem": (2, lax.rem),
    "neg": (1, lax.neg),
    "clamp": (3, lax.clamp),
}


@pytest.mark.parametrize("primitive", OPERATIONS)
def test_results_are_those_of_jax(primitive: str) -> None:
    count, function = OPERATIONS[primitive]
    operands = [each for each in product(NUMBERS, repeat=count) if primitive not in ("div", "rem") or each[1]]
    true = np.asarray(function(*np.array(operands, np.int32).T))
    assert [_apply(primitive, list(each)) for each in operands] == true.astype(int).tolist()


@pytest.mark.parametrize("primitive", ["div", "rem"])
def test_nothing_is_said_of_a_division_by_zero(primitive: str) -> None:
    assert _apply(primitive, [3, 0]) is None


def added(steps: int, operands: tuple[str, ...]) -> tuple[Numbers, int | None]:
    """Sums, each of the one before, from the position 1 along an axis."""
    start = Equation("axis_index", (), (Variable("v0", JaxType("i32[]")),), axes=("x",))
    equations = [start]
    for number in range(steps):
        inputs = tuple(name.format(f"v{number}") for name in operands)
        equations.append(Equation("add", inputs, (Variable(f"v{number + 1}", JaxType("i32[]")),)))
    program = JaxprProgram((), (Jaxpr((), (), tuple(equations), (f"v{steps}",)),))
    numbers = Numbers(JaxprFlow(print_jaxpr(program)), {"x": 2}, {"x": 1})
    return numbers, numbers.value(At(0, f"v{steps}"))


@pytest.mark.parametrize("steps", [1, MAX_DEPTH - 1, MAX_DEPTH, 5 * MAX_DEPTH])
def test_one_equation_behind_the_other(steps: int) -> None:
    """The first is not a sum; Python's stack holds many times as many as are followed."""
    _, value = added(steps, ("{}", "1:i32[]"))
    assert value == (1 + steps if steps < MAX_DEPTH else None)


@pytest.mark.parametrize("steps", [1, 9, 10, 11, 30])
def test_operands_that_are_shared_without_end(steps: int) -> None:
    """Twice as much to evaluate in each step: of what has `2 ** (n + 1) - 1` equations no more than the limit."""
    numbers, value = added(steps, ("{}", "{}"))
    whole = 2 ** (steps + 1) - 1
    assert value == (2**steps if whole <= MAX_EVALUATED else None)
    assert MAX_EVALUATED - numbers.left <= MAX_EVALUATED + 2 * steps


LOOPS: dict[str, tuple[tuple[int, int], str, dict[str, tuple[str, str]]]] = {
    "while": (
        (1, 2),
        "3:i32[] 4:i32[] 5:i32[] 7:i32[] 8:i32[]",
        {"cond_jaxpr": ("a s t", "s"), "body_jaxpr": ("b c s t", "s u")},
    ),
    "scan": ((1, 2), "5:i32[] 7:i32[] 8:i32[] 9:i32[]", {"jaxpr": ("c s t w", "s u w")}),
}
"""How many constants a loop has, its operands, and the inputs and outputs of its bodies: `s` is handed on as it is."""


@pytest.mark.parametrize("primitive", LOOPS)
def test_what_a_loop_hands_on_is_known_behind_it(primitive: str) -> None:
    loop, operands, bodies = LOOPS[primitive]

    def variables(names: str) -> tuple[Variable, ...]:
        return tuple(Variable(name, JaxType("i32[]")) for name in names.split())

    places = tuple((name, number) for number, name in enumerate(bodies, 1))
    looped = Equation(primitive, tuple(operands.split()), variables("o p q"), bodies=places, loop=loop)
    step = Equation("add", ("t", "1:i32[]"), variables("u"))
    inner = [
        Jaxpr((), variables(inputs), (step,) if "u" in outputs else (), tuple(outputs.split()))
        for inputs, outputs in bodies.values()
    ]
    program = JaxprProgram((), (Jaxpr((), (), (looped,), ("o", "p", "q")), *inner))
    flow = JaxprFlow(print_jaxpr(program))
    assert [Numbers(flow, {}, {}).value(At(0, name)) for name in "opq"] == [7, None, None]


@pytest.mark.parametrize("primitive", ["run_scoped", "core_map", "custom_call"])
def test_the_results_of_a_scope_are_those_of_its_body(primitive: str) -> None:
    """The body takes the operands as its constants; of what else has a body nothing is known."""
    number = JaxType("i32[]")
    start = Equation("axis_index", (), (Variable("a", number),), axes=("x",))
    scope = Equation(primitive, ("a",), (Variable("r", number),), bodies=(("jaxpr", 1),))
    twice = Equation("mul", ("c", "2:i32[]"), (Variable("d", number),))
    inner = Jaxpr((Variable("c", number),), (), (twice,), ("d",))
    flow = JaxprFlow(print_jaxpr(JaxprProgram((), (Jaxpr((), (), (start, scope), ("r",)), inner))))
    found = [Numbers(flow, {"x": 4}, {"x": at}).value(At(0, "r")) for at in range(4)]
    assert found == ([None] * 4 if primitive == "custom_call" else [0, 2, 4, 6])


def numbered(*equations: Equation, bodies: tuple[Jaxpr, ...] = (), **options: int) -> int | None:
    """The value of `r`, at 1 of 4 along `x`."""
    program = JaxprProgram((), (Jaxpr((), (), equations, ("r",)), *bodies))
    return Numbers(JaxprFlow(print_jaxpr(program)), {"x": 4}, {"x": 1}, **options).value(At(0, "r"))


def made(primitive: str, inputs: str = "", type: str = "i32[]", **options: Any) -> Equation:
    return Equation(primitive, tuple(inputs.split()), (Variable("r", JaxType(type)),), **options)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("2:i32[]", 2),
        ("-3:i32[]", -3),
        ("True:bool[]", 1),
        ("False:bool[]", 0),
        ("TypedInt(7, dtype=int32):i32[]", 7),
        ("1.5:f32[]", None),
        ("2147483647:i32[]", 2**31 - 1),
        ("2147483648:i64[]", None),  # wraps around in an int32
        ("-2147483647:i32[]", 1 - 2**31),
        ("-2147483648:i32[]", None),
    ],
)
def test_literals(literal: str, value: int | None) -> None:
    program = JaxprProgram((), (Jaxpr((), (), (), ()),))
    assert Numbers(JaxprFlow(print_jaxpr(program)), {}, {}).value(At(0, literal)) == value


@pytest.mark.parametrize("which", range(-2, 5))
def test_a_branch_or_a_case_that_is_not_there_is_unknown(which: int) -> None:
    number = JaxType("i32[]")
    branches = tuple(Jaxpr((), (Variable("v", number),), (), (f"{10 + index}:i32[]",)) for index in range(3))
    places = tuple((f"branches[{index}]", 1 + index) for index in range(3))
    taken = numbered(made("cond", f"{which}:i32[] 5:i32[]", bodies=places), bodies=branches)
    assert taken == (10 + which if which in range(3) else None)
    assert _apply("select_n", [which, 10, 11, 12]) == taken


@pytest.mark.parametrize(("axes", "number"), [(("x",), 1), (("y",), None), (("x", "y"), None), ((), 0), (None, None)])
def test_positions_along_axes_that_are_known(axes: tuple[str, ...] | None, number: int | None) -> None:
    assert numbered(made("axis_index", axes=axes)) == number


def test_of_what_is_damaged_nothing_is_known() -> None:
    """A scope with two bodies, and more results than its body has outputs."""
    one = Jaxpr((), (), (), ("3:i32[]",))
    assert numbered(made("run_scoped", bodies=(("jaxpr", 1),)), bodies=(one,)) == 3
    assert numbered(made("run_scoped", bodies=(("jaxpr", 1), ("other", 2))), bodies=(one, one)) is None
    two = Equation("run_scoped", (), (Variable("q", JaxType("i32[]")), *made("").outputs), bodies=(("jaxpr", 1),))
    assert numbered(two, bodies=(one,)) is None
    assert numbered(made("add", "1:i32[] unknown")) is None
    assert numbered(made("add", "1:i32[] 2:i32[] 3:i32[]")) is None


@pytest.mark.parametrize("primitive", ["pvary", "convert_element_type", "squeeze", "reshape", "copy", "stop_gradient"])
def test_what_changes_no_number(primitive: str) -> None:
    assert _apply(primitive, [7]) == 7
    assert _apply(primitive, [7, 7]) is None
    assert _apply("sin", [7]) is None
