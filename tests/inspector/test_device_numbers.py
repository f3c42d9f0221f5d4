"""Integers that devices compute from their positions, against JAX's own arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from jax import lax
from shardscope.inspector.values.device_numbers import _apply

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
