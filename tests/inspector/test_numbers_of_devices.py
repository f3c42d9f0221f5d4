"""Integers that each device computes from its position, against the numbers that `vmap` gives for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from shardscope.inspector.dataflow.device_integers import Numbers, coordinates
from shardscope.inspector.dataflow.jaxpr import At, JaxprFlow

from .test_true_variance import traced

SIZES = {"x": 2, "y": 2}


def places() -> tuple[Any, Any]:
    return lax.axis_index("x"), lax.axis_index("y")


def arithmetic() -> Any:
    x, y = places()
    many = 7 * x - 3 * y + 1
    return many, -many, x * 2 + y, lax.rem(many, 3), lax.div(many, 2), lax.max(x, y), lax.min(many, y)


def compared() -> Any:
    x, y = places()
    both = (x == y) & (x < 1), (x > y) | (y >= 1), (x <= y) & (x != 0)
    return *both, jnp.where(x > y, x * 5, y - 9), lax.clamp(1, 4 * x, 3), lax.clamp(y, 2, x)


def of_calls() -> Any:
    x, y = places()
    one, other = jax.jit(lambda v, w: (w, v - w))(x, y)
    return one, other, jax.checkpoint(lambda v: v * 3 + y)(x), jax.jit(lambda v: jax.jit(lambda w: w + v)(x))(y)


def chosen() -> Any:
    x, y = places()
    branches = [lambda v, w: (v + 1, w), lambda v, w: (w * 5, x), lambda v, w: (v - w, y)]
    return (
        *lax.switch(x + y, branches, x, y),
        *lax.switch(3 * x - 1, branches, y, x),
        lax.cond(x > 0, lambda: y, lambda: 4),
    )


def looped() -> Any:
    """Of what a loop carries, that is known which it hands on as it is."""
    x, y = places()
    first, second, _ = lax.fori_loop(0, 3, lambda _, held: (held[0], held[1], held[2] + held[0]), (x, y + 1, x))
    same, _ = lax.while_loop(lambda held: held[1] < 3 + x, lambda held: (held[0], held[1] + y + 1), (x * 2, 0))
    (kept, _), _ = lax.scan(lambda held, row: ((held[0], held[1] + y + row), held[0]), (y - x, 0), jnp.arange(3))
    return first, second, same, kept


def of_both() -> Any:
    return lax.axis_index(("x", "y")), lax.axis_index(("y", "x")), jnp.reshape(lax.axis_index("y"), (1,))[0]


def unknown() -> Any:
    x, _ = places()
    total = lax.fori_loop(0, 3, lambda _, held: held + x, x)
    return lax.psum(x, "y"), total, total + x, x << 31, lax.select(total > 0, x, x + 1)


KNOWN: dict[Callable[[], Any], bool] = {
    **dict.fromkeys((arithmetic, compared, of_calls, chosen, looped, of_both), True),
    unknown: False,
}


@pytest.mark.parametrize("function", KNOWN, ids=lambda each: each.__name__)
def test_each_device_has_its_numbers(function: Callable[[], Any]) -> None:
    text = traced(lambda *_: function(), checked=False)
    ((_, body),) = next(each.equation.bodies for each in text.equations if each.equation.shard_map)
    along_y = jax.vmap(lambda _: jax.tree.leaves(function()), axis_name="y")
    true = [np.asarray(each) for each in jax.jit(jax.vmap(along_y, axis_name="x"))(np.zeros((2, 2)))]
    flow, outputs = JaxprFlow(text), text.program.jaxprs[body].outputs
    expanded = {each.outputs[0].name: each.inputs for each in text.program.jaxprs[body].equations}
    for at in coordinates(tuple(SIZES), SIZES):
        numbers = [Numbers(flow, SIZES, at).value(At(body, expanded[name][0])) for name in outputs]
        assert numbers == [int(each[at["x"], at["y"]]) if KNOWN[function] else None for each in true]
