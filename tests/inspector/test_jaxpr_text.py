"""How a jaxpr is laid out: as JAX does it, and bodies in bodies alike."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from shardscope.inspector.ir.jaxpr import Equation, Jaxpr, JaxprProgram, Variable
from shardscope.inspector.ir.jaxpr_text import MAX_DEPTH, print_jaxpr
from shardscope.inspector.ir.types import JaxType


def text_of(*jaxprs: Jaxpr) -> str:
    return print_jaxpr(JaxprProgram((), jaxprs)).source.data.decode()


def flat(traced: Any) -> Jaxpr:
    """A jaxpr of JAX's whose parameters it does not print, with names in the order in which JAX gives them."""
    names: dict[Any, str] = {}

    def variable(of: Any) -> Variable:
        return Variable(names.setdefault(of, "abcdefgh"[len(names)]), JaxType(of.aval.str_short(short_dtypes=True)))

    def operand(of: Any) -> str:
        return f"{of.val}:{of.aval.str_short(short_dtypes=True)}" if hasattr(of, "val") else names[of]

    inputs = tuple(map(variable, traced.invars))
    equations = tuple(
        Equation(each.primitive.name, tuple(map(operand, each.invars)), tuple(map(variable, each.outvars)))
        for each in traced.eqns
    )
    return Jaxpr((), inputs, equations, tuple(map(operand, traced.outvars)))


@pytest.mark.parametrize("function", [lambda x, y: x * y, lambda x, y: (x * y + 2.0, x), lambda x, y: ()])
def test_lines_are_those_of_jax(function: Any) -> None:
    traced = jax.make_jaxpr(function)(jnp.ones(4), jnp.ones(4)).jaxpr
    ours = text_of(flat(traced))
    if len(traced.eqns) > 1:  # a single one stands in the first line
        assert ours == re.sub(r" }$", "\n}\n", str(traced))
    assert " ".join(ours.split()) == " ".join(str(traced).split())


@pytest.mark.parametrize("depth", [1, 2, 5, MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH])
def test_bodies_in_bodies(depth: int) -> None:
    """Each opening brace is closed in its own column; what it holds stands four further right, and ends two."""
    x = Variable("x", JaxType("f32[4]"))
    outer = tuple(
        Jaxpr((), (x,), (Equation("call", ("x",), (Variable("y", x.type),), bodies=(("jaxpr", level + 1),)),), ("y",))
        for level in range(depth)
    )
    inner = Jaxpr((), (x,), (Equation("neg", ("x",), (Variable("y", x.type),)),), ("y",))
    lines = text_of(*outer, inner).splitlines()
    opened: list[int] = []
    for line in lines:
        column = len(line) - len(line.lstrip())
        if "{ lambda" in line:
            opened.append(column)
        elif line.strip() == "}":
            assert column == opened.pop()
        elif " = " in line or "nested too deeply" in line:
            assert column == opened[-1] + 4
        elif line.lstrip().startswith("in ("):
            assert column == opened[-1] + 2
    assert not opened
    assert sum("call[" in line for line in lines) == min(depth, MAX_DEPTH + 1)
    assert sum("nested too deeply" in line for line in lines) == (depth > MAX_DEPTH)
