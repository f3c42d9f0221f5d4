"""Calls as a script makes them, found from a frame, against what Python's own signatures bind."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec
from shardscope.inspector.capture.worker.inputs.calls import (
    Call,
    call_being_traced,
    call_of,
    is_own_of_jax,
    jitted,
    mapped_call,
    module_of,
    names_of,
)


def step(a: Any, b: Any = 2, /, *rest: Any, c: Any, d: Any = 4, **others: Any) -> Call | None:
    return call_of(sys._getframe())


def plain(a: Any, b: Any = 2) -> Call | None:
    return call_of(sys._getframe())


class Model:
    scale = 3

    def apply(self, a: Any, *, c: Any = 1) -> Call | None:
        return call_of(sys._getframe())

    def __call__(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (step, (1,), {"c": 3}),
        (step, (1, 5, 6, 7), {"c": 3, "d": 8, "e": 9}),
        (plain, (1,), {}),
        (plain, (), {"b": 3, "a": 1}),
        (Model().apply, (1,), {"c": 5}),
    ],
)
def test_the_call_of_a_frame(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    gc.unfreeze()  # what commands of other tests may have left: functions are found among what the collector knows
    found = function(*args, **kwargs)
    assert found is not None
    assert getattr(found.function, "__func__", found.function) is getattr(function, "__func__", function)
    wanted, bound = (inspect.signature(function).bind(*given[0], **given[1]) for given in ((args, kwargs), found[1:]))
    wanted.apply_defaults()
    bound.apply_defaults()
    assert bound.arguments == wanted.arguments
    assert not found.is_traced
    assert not found.is_mapped


@jax.jit
def doubled(x: jax.Array) -> jax.Array:
    return x * 2


def test_names_and_modules_inside_of_wrappers() -> None:
    @functools.wraps(plain)
    def wrapper(*args: Any) -> Any:
        return plain(*args)

    for function in (plain, functools.partial(plain, 1), jax.jit(plain), wrapper):
        assert names_of(function) == ("plain", "plain")
    assert names_of(Model.apply) == names_of(Model().apply) == ("apply", "Model.apply")
    assert names_of(Model()) == ("", "")
    assert module_of(doubled) is sys.modules[__name__]
    assert module_of(os.path.join) is sys.modules["__main__"]
    assert jitted(doubled.__wrapped__) is doubled
    assert jitted(plain) is None
    found = call_being_traced(doubled.__wrapped__, (1,), {}, None)
    assert found == Call(doubled, (1,), {})
    assert call_being_traced(plain, (1,), {}, None) is None
    assert is_own_of_jax(jnp.sum)
    assert not is_own_of_jax(doubled)


def test_calls_in_traces_and_maps() -> None:
    calls: list[Call] = []

    def inner(x: jax.Array) -> jax.Array:
        calls.append(Call(inner, (x,), {}))
        around = mapped_call(sys._getframe().f_back)
        if around is not None:
            calls.append(around)
        return x * 2

    x = jnp.ones((4, 2))
    jax.jit(inner)(x)
    jax.grad(lambda x: inner(x).sum())(x)
    (traced, derived) = calls
    assert traced.is_traced
    assert derived.is_traced
    assert not traced.is_mapped
    (leaf,) = traced.with_types().args
    assert isinstance(leaf, jax.ShapeDtypeStruct)
    assert (leaf.shape, leaf.dtype) == ((4, 2), jnp.float32)
    assert np.array_equal(derived.with_types().args[0], x)  # what a derivative is taken at is known
    calls.clear()
    mesh = Mesh(np.array(jax.devices()[:1]), ("x",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(inner, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"))
    jax.jit(mapped)(x)
    inside, around = calls
    assert inside.is_mapped
    assert not around.is_mapped
    assert names_of(around.function) == names_of(inner)
    assert around.args[0].shape == (4, 2)
