"""Correctness of gradients: along a random direction, JAX's derivative against finite differences.

The function is called outside of its own jit, in float64 where that is possible, while each reverse-mode derivative
that it takes of arrays with values is compared: of `f` at `x`, the gradient times a direction `v` with
(f(x + hv) - f(x - hv)) / 2h, for two sizes of h, so that it is known how good the differences are. Where all
derivatives are taken inside of other jits, the function is called once more without these. One that is taken inside of
a shard_map has no value here; what it becomes is compared with a run on one device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import api
from jax.sharding import AxisType

from ...protocol.values import Derivative, Gradients
from .. import failures
from ..channel import error_text
from ..inputs import callables
from ..inputs.arguments import concrete
from ..inputs.paths import path_text
from ..inputs.wrappers import is_jitted, jax_jit, parameter_names
from ..program.avals import is_ref

Vjp = Callable[..., Any]

STEPS = {64: 1e-5, 32: 1e-2}
"""h by the bits of the floats that are moved, or that come out, relative to how large the elements are."""

MAX_LEAVES = 64
"""Arrays of one argument that are looked at one by one where their sum is wrong."""

MAX_CALLS = 64
"""Derivatives that are compared."""

NOTHING = "the function takes no derivative of arrays with values"


def probe() -> str | None:
    """Return why gradients cannot be checked with this version of JAX; None where they can."""
    return None if callable(getattr(api, "vjp", None)) else "gradients are not checked: this JAX has no api.vjp"


def check(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], seed: int) -> Gradients:
    """Compare all derivatives that a function takes of its arguments."""
    if (problem := probe()) is not None:
        return Gradients((), problem)
    inner, bound_args, bound_kwargs = callables.unwrap(function)
    while is_jitted(inner) and hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    given = ((*bound_args, *args), {**bound_kwargs, **kwargs})
    problem = ""
    for bits in (64, 32):  # there are functions that take nothing in float64
        try:
            with _x64(bits == 64):
                found = _compared(inner, given, seed, bits)
        except Exception as error:  # of the user's function, or of what cannot be called so
            problem = error_text(error)
            continue
        return Gradients(tuple(found.checked), None if found.checked else NOTHING, found.left_out)
    return Gradients((), problem)


def _compared(function: Any, given: callables.Arguments, seed: int, bits: int) -> Comparison:
    found = Comparison(seed)
    leaves, tree = jax.tree.flatten(given)
    dtype = np.dtype(f"float{bits}")

    def call() -> None:  # with arrays of its own, as a jit in the function may donate what it is given
        wide = [_wide(leaf, dtype, seed, index) for index, leaf in enumerate(leaves)]
        args, kwargs = jax.tree.unflatten(tree, wide)
        with _explicit_mesh(wide):
            function(*args, **kwargs)

    with found.watching():
        call()
        if not found.checked:
            with jax.disable_jit():
                call()
    return found


@contextmanager
def _x64(enabled: bool) -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", enabled)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def _explicit_mesh(leaves: list[Any]) -> AbstractContextManager[Any]:
    """The mesh of arguments of explicit types, where none is set: outside of jit JAX wants to be told it."""
    for leaf in leaves:
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        types = getattr(mesh, "axis_types", ())
        if AxisType.Explicit in types and jax.sharding.get_abstract_mesh().empty:
            context: AbstractContextManager[Any] = jax.set_mesh(mesh)
            return context
    return nullcontext()


class Comparison:
    """Compares what `jax.vjp` gives while a function runs; `jax.grad` and `jax.value_and_grad` go through it."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.checked: list[Derivative] = []
        self.left_out = 0
        self._calls = 0
        self._is_inside = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Compare each derivative that is taken meanwhile."""
        original, public = api.vjp, jax.vjp
        replaced = self._watched(original)
        api.vjp, jax.vjp = replaced, replaced
        try:
            yield
        finally:
            api.vjp, jax.vjp = original, public

    def _watched(self, original: Vjp) -> Vjp:
        def vjp(function: Any, *primals: Any, has_aux: bool = False, **options: Any) -> Any:
            leaves = jax.tree.leaves(primals)
            if self._is_inside or any(isinstance(x, jax.core.Tracer) for x in leaves):
                return original(function, *primals, has_aux=has_aux, **options)
            if self._calls >= MAX_CALLS:
                self.left_out += 1
                return original(function, *primals, has_aux=has_aux, **options)
            self._is_inside, self._calls = True, self._calls + 1
            try:
                # Compiled, because what runs one operation after the other takes long on many devices.
                with jax.disable_jit(False):
                    compiled = function if has_aux else jax_jit(function)
                    found = original(compiled, *primals, has_aux=has_aux, **options)
                    self._compare(compiled, primals, found, has_aux, sys._getframe(1))
            finally:
                self._is_inside = False
            return found

        return vjp

    def _compare(self, function: Any, primals: tuple[Any, ...], found: Any, has_aux: bool, caller: Any) -> None:
        outputs, backward = found[0], found[1]
        weights = [self._direction(leaf, scalar=True) for leaf in jax.tree.leaves(outputs)]
        gradients = backward(jax.tree.unflatten(jax.tree.structure(outputs), weights))

        def value(*at: Any) -> list[Any]:
            result = function(*at)
            return list(jax.tree.leaves(result[0] if has_aux else result))

        compiled = jax_jit(value) if has_aux else value

        def weighed(*at: Any) -> float:
            return sum(_product(out, weight) for out, weight in zip(compiled(*at), weights, strict=True))

        bits, called = _bits(jax.tree.leaves(outputs)), named(function, caller, len(primals))
        for number, (primal, gradient) in enumerate(zip(primals, gradients, strict=True)):
            paths = jax.tree_util.tree_flatten_with_path(primal)[0]
            slopes = jax.tree.leaves(gradient)
            chosen = [n for n, (_, leaf) in enumerate(paths) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
            if not chosen or len(slopes) != len(paths):
                continue
            groups = [chosen]
            first = self._slope(weighed, bits, primals, number, chosen, slopes)
            is_right = first is not None and abs(first[0] - first[1]) <= 1e-6 * abs(first[1])
            if not is_right and len(chosen) > 1:
                groups = [[leaf] for leaf in chosen[:MAX_LEAVES]]
            for group in groups:
                slope = first if group == chosen else self._slope(weighed, bits, primals, number, group, slopes)
                if slope is not None:
                    path = path_text(paths[group[0]][0]) if len(group) == 1 else ""
                    argument = f"{called.arguments[number]}{path}"
                    self.checked.append(Derivative(called.function, argument, *slope, called.file, called.line))

    def _slope(
        self,
        weighed: Callable[..., float],
        bits: int,
        primals: tuple[Any, ...],
        number: int,
        chosen: list[int],
        slopes: list[Any],
    ) -> tuple[float, float, float] | None:
        """Along a random direction of some arrays of an argument: the gradient, differences, and their spread.

        `bits` are those of what comes out.
        """
        leaves, tree = jax.tree.flatten(primals[number])
        directions = {leaf: self._direction(leaves[leaf]) for leaf in chosen}
        size = max(1.0, *(float(np.max(np.abs(np.asarray(leaves[leaf])), initial=0.0)) for leaf in chosen))

        def moved(step: float) -> float:
            changed = [_moved(x, step * directions[n]) if n in directions else x for n, x in enumerate(leaves)]
            at = (*primals[:number], jax.tree.unflatten(tree, changed), *primals[number + 1 :])
            return weighed(*at)

        h = STEPS.get(min(bits, _bits(leaves[leaf] for leaf in chosen)), STEPS[32]) * size
        found = [(moved(step) - moved(-step)) / (2 * step) for step in (h, 4 * h)]
        slope = sum(_product(slopes[leaf], directions[leaf]) for leaf in chosen)
        return slope, found[0], abs(found[0] - found[1])

    def _direction(self, leaf: Any, *, scalar: bool = False) -> Any:
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            return np.zeros(np.shape(leaf), jax.dtypes.float0)
        shape, dtype = np.shape(leaf), jnp.result_type(leaf)
        values = np.ones(shape) if scalar and not shape else self.random.normal(size=shape)
        return _like(leaf, values.astype(dtype))


def _wide(leaf: Any, dtype: Any, seed: int, index: int) -> Any:
    if is_ref(getattr(leaf, "aval", None)):
        return jax.new_ref(_wide(leaf[...], dtype, seed, index))
    if not hasattr(leaf, "dtype") or not hasattr(leaf, "shape"):
        return leaf
    value = concrete(leaf, seed, index)
    if jnp.issubdtype(value.dtype, jnp.floating) and not jnp.issubdtype(value.dtype, jax.dtypes.extended):
        value = np.asarray(value).astype(dtype)
    return _like(leaf, value)


def _like(leaf: Any, value: Any) -> Any:
    sharding = getattr(leaf, "sharding", None) if getattr(leaf, "committed", True) else None
    return jnp.asarray(value) if sharding is None else jax.device_put(value, sharding)


def _bits(leaves: Iterable[Any]) -> int:
    """The fewest that one of the floats among them has."""
    dtypes = map(jnp.result_type, leaves)
    return min((jnp.finfo(dtype).bits for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)), default=64)


def _moved(leaf: Any, by: Any) -> Any:
    """A leaf somewhere else; a number of Python's stays one, of which JAX makes what goes with other types."""
    return float(leaf + by) if isinstance(leaf, float) else leaf + by


def _product(one: Any, other: Any) -> float:
    if getattr(other, "dtype", None) == jax.dtypes.float0:
        return 0.0
    return float(np.sum(np.asarray(one, np.float64) * np.asarray(other, np.float64)))


class Named(NamedTuple):
    """A derivative that a frame of JAX takes, in the user's words."""

    function: str
    arguments: list[str]
    file: str | None
    line: int


def named(function: Any, caller: Any, count: int) -> Named:
    """The names of a derivative of so many arguments, which `caller`, a frame of `jax.grad`, takes."""
    name = getattr(caller.f_locals.get("fun", function), "__name__", "the function")
    return Named(str(name), _names(caller, count), *_place(caller))


def _names(caller: Any, count: int) -> list[str]:
    function, argnums = caller.f_locals.get("fun"), caller.f_locals.get("argnums")
    code = getattr(function, "__code__", None)
    is_wrapper = code is not None and failures.is_library(code.co_filename)  # its own names mean nothing to the user
    is_known = callable(function) and not is_wrapper
    names = parameter_names(function, 64) if is_known else []
    numbers = (argnums,) if isinstance(argnums, int) else argnums or range(count)
    known = [names[number] if 0 <= number < len(names) else f"argument {number}" for number in numbers]
    return known if len(known) == count else [f"argument {number}" for number in range(count)]


def _place(caller: Any) -> tuple[str | None, int]:
    """The user's line that takes the derivative, or that of a library; else where the function begins."""
    if (found := failures.users_call(caller)) is not None:
        return found
    code = getattr(caller.f_locals.get("fun"), "__code__", None)
    return (None, 0) if code is None else (code.co_filename, code.co_firstlineno)
