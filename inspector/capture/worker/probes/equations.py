"""Evaluating equations of a jaxpr again. How JAX binds a recorded equation is private to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..program.structure import opened


def probe() -> str | None:
    """Return what cannot be done with this version of JAX because an attribute has moved."""
    equation = jax.make_jaxpr(jax.lax.neg)(1).jaxpr.eqns[0]
    if not (hasattr(equation, "ctx") and hasattr(equation.primitive, "get_bind_params")):
        return f"JAX {jax.__version__} evaluates equations differently: values inside the program are not available"
    return None


def bind(equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """The results of an equation, traced where this is called, in its own context (mesh, checks)."""
    params = equation.primitive.get_bind_params(equation.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # a pair before JAX 0.10
    with equation.ctx.manager:
        results = equation.primitive.bind(*functions, *inputs, **params)
    return list(results) if equation.primitive.multiple_results else [results]


class Environment:
    """The values of one jaxpr's variables while it is evaluated."""

    def __init__(self, jaxpr: Any, inputs: Sequence[Any]) -> None:
        inner = opened(jaxpr)
        constants = getattr(jaxpr, "consts", ())
        self._values = dict(zip((*inner.constvars, *inner.invars), (*constants, *inputs), strict=True))

    def read(self, atom: Any) -> Any:
        """The value of a variable, or a literal's own."""
        return atom.val if hasattr(atom, "val") else self._values[atom]

    def write(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        """Give variables their values."""
        self._values.update(zip(variables, values, strict=True))


def evaluated(jaxpr: Any, inputs: Sequence[Any], bind: Callable[[Any, Sequence[Any]], list[Any]]) -> list[Any]:
    """The results of a jaxpr, each of whose equations `bind` evaluates."""
    environment = Environment(jaxpr, inputs)
    inner = opened(jaxpr)
    for equation in inner.eqns:
        environment.write(equation.outvars, bind(equation, [environment.read(atom) for atom in equation.invars]))
    return [environment.read(atom) for atom in inner.outvars]
