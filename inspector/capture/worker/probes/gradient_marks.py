"""Marks in a traced function, of each derivative that it takes inside of a shard_map: arguments, value, gradients."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax._src import api
from jax.interpreters import ad, batching
from jax.sharding import AxisType

from ..program.avals import Primitive
from .derivative_names import Named, named
from .watched_derivatives import Vjp, watched_by

Role = Literal["argument", "value", "gradient"]

MARK = Primitive("shardscope_mark")
MARK.def_impl(lambda value, **_: value)
MARK.def_abstract_eval(lambda aval, **_: aval)
ad.primitive_jvps[MARK] = lambda primals, tangents, **params: (MARK.bind(*primals, **params), tangents[0])
# What is mapped has a value for each element, of which no sum is known.
batching.primitive_batchers[MARK] = lambda values, dimensions, **_: (values[0], dimensions[0])


@dataclass(frozen=True, slots=True)
class MarkedCall:
    """A derivative in the user's words, and its arguments."""

    named: Named
    primals: tuple[Any, ...]


class Marking:
    """Marks what `jax.grad` and `jax.value_and_grad` differentiate inside of a shard_map."""

    def __init__(self) -> None:
        self.calls: list[MarkedCall] = []
        self._is_inside = False

    def watching(self) -> AbstractContextManager[None]:
        """Mark each derivative of a scalar that is taken meanwhile."""
        return watched_by(self._watched)

    def _watched(self, original: Vjp) -> Vjp:
        def vjp(function: Any, *primals: Any, has_aux: bool = False, **options: Any) -> Any:
            caller = sys._getframe(1)
            if self._is_inside or caller.f_globals is not vars(api) or not _is_mapped():
                return original(function, *primals, has_aux=has_aux, **options)
            call = len(self.calls)
            self.calls.append(MarkedCall(named(function, caller, len(primals)), primals))
            self._is_inside = True
            try:
                found = original(function, *_marked(primals, call, "argument"), has_aux=has_aux, **options)
            finally:
                self._is_inside = False
            value, backward, *aux = found
            gradients = jax.tree_util.Partial(lambda back, *given: _marked(back(*given), call, "gradient"), backward)
            return _marked(value, call, "value"), gradients, *aux

        return vjp


def _marked(values: Any, call: int, role: Role) -> Any:
    leaves, tree = jax.tree.flatten(values)
    marked = [
        MARK.bind(leaf, call=call, role=role, leaf=number) if _is_float(leaf) else leaf
        for number, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(tree, marked)


def _is_float(leaf: Any) -> bool:
    return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating))


def _is_mapped() -> bool:
    """Return whether this is traced inside of a shard_map."""
    return AxisType.Manual in jax.sharding.get_abstract_mesh().axis_types
