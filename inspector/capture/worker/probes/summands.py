"""Each device's summand of an unreduced value, as a value that varies: a cast that JAX itself has no use for."""

from __future__ import annotations

from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import mlir

from ..program.avals import is_unreduced

_READ_AS_VARYING = Primitive("shardscope_read_as_varying")


def _type(aval: Any) -> Any:
    manual = aval.manual_axis_type
    kind = {"unreduced_kind": None} if hasattr(manual, "unreduced_kind") else {}  # since JAX 0.12
    varying = manual.varying | manual.unreduced
    return aval.update(manual_axis_type=manual.update(varying=varying, unreduced=frozenset(), **kind))


_READ_AS_VARYING.def_abstract_eval(_type)
mlir.register_lowering(_READ_AS_VARYING, lambda _, value: [value])


def summands(value: Any) -> Any:
    """The same bits, of a type that can leave a shard_map; any other value is given back as it is."""
    return _READ_AS_VARYING.bind(value) if is_unreduced(value) else value
