"""A jaxpr that computes in float64 what another one computes in the types that it was traced with.

What a function asserts about its types, or casts to, is behind it by then: the program stays the one that was traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..own_jit import jax_jit
from .structure import opened

NARROW = frozenset(
    {"bitcast_convert_type", "nextafter", "pallas_call", "ffi_call", "custom_call", "pure_callback", "io_callback"}
)
"""Primitives that depend on bits, or are made for the types of their operands: they stay as they are, between casts."""

TYPES_OF_PRODUCTS = frozenset({"precision", "algorithm"})
"""Parameters that may ask for the types in which a product is computed."""


@contextmanager
def x64(enabled: bool) -> Iterator[None]:
    """The context in which arrays may have 64 bits, or may not."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", enabled)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def wide_array(value: Any) -> Any:
    """An array in the type that it has in the wide program."""
    is_narrow = _is_narrow(getattr(value, "dtype", None))
    return np.asarray(value).astype(_wide_dtype(value.dtype)) if is_narrow else value


def widened(traced: Any) -> Any:
    """The program of a jaxpr, closed or not, in float64; its arguments are those, wide."""
    if opened(traced) is traced:
        return _jaxpr(traced)
    return traced.replace(jaxpr=_jaxpr(traced.jaxpr), consts=[wide_array(each) for each in traced.consts])


def _jaxpr(jaxpr: Any) -> Any:
    variables: dict[Any, Any] = {}

    def of(atom: Any) -> Any:
        if not _is_narrow(getattr(atom.aval, "dtype", None)):
            return atom
        if hasattr(atom, "val"):
            value = np.asarray(atom.val).astype(_wide_dtype(atom.aval.dtype))
            return type(atom)(value, _wide_aval(atom.aval))
        if atom not in variables:
            variables[atom] = type(atom)(_wide_aval(atom.aval))
        return variables[atom]

    equations = [
        each.replace(
            primitive=primitive,
            params=params,
            invars=[of(atom) for atom in each.invars],
            outvars=[of(variable) for variable in each.outvars],
        )
        for each in jaxpr.eqns
        for primitive, params in [_made_wide(each)]
    ]
    ends = {name: [of(atom) for atom in getattr(jaxpr, name)] for name in ("constvars", "invars", "outvars")}
    constants = {"consts": [wide_array(each) for each in jaxpr.consts]} if hasattr(jaxpr, "consts") else {}
    return jaxpr.replace(eqns=equations, **ends, **constants)


def _made_wide(equation: Any) -> tuple[Any, dict[str, Any]]:
    """The primitive and the parameters of an equation of wide operands."""
    name, params = equation.primitive.name, equation.params
    if name in NARROW and any(
        _is_narrow(getattr(each.aval, "dtype", None)) for each in (*equation.invars, *equation.outvars)
    ):
        return _between_casts(equation)
    if name == "reduce_precision":
        return equation.primitive, {**params, "exponent_bits": 11, "mantissa_bits": 52}
    return equation.primitive, {
        key: None if key in TYPES_OF_PRODUCTS else _parameter(value) for key, value in params.items()
    }


def _between_casts(equation: Any) -> tuple[Any, dict[str, Any]]:
    """A call of the equation as it is, on what it is written for."""

    def narrow(*values: Any) -> Any:
        given = [_cast(value, atom.aval) for value, atom in zip(values, equation.invars, strict=True)]
        functions_and_params = equation.primitive.get_bind_params(equation.params)
        functions, params = functions_and_params if isinstance(functions_and_params, tuple) else ((), equation.params)
        results = equation.primitive.bind(*functions, *given, **params)
        return [wide(each) for each in (results if equation.primitive.multiple_results else [results])]

    def wide(value: Any) -> Any:
        return value.astype(_wide_dtype(value.dtype)) if _is_narrow(value.dtype) else value

    operands = [jax.ShapeDtypeStruct(each.aval.shape, _wide_aval(each.aval).dtype) for each in equation.invars]
    (call,) = opened(jax.make_jaxpr(jax_jit(narrow))(*operands)).eqns
    return call.primitive, call.params


def _cast(value: Any, aval: Any) -> Any:
    return value.astype(aval.dtype) if _is_narrow(aval.dtype) else value


def _parameter(value: Any) -> Any:
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(map(_parameter, value)) if type(value) in (tuple, list) else value
    if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
        return widened(value)
    if isinstance(value, np.dtype) and _is_narrow(value):
        return _wide_dtype(value)
    return _wide_aval(value) if isinstance(value, jax.core.ShapedArray) else value


def _wide_aval(aval: Any) -> Any:
    if hasattr(aval, "inner_aval"):  # of a ref
        return aval.update(inner_aval=_wide_aval(aval.inner_aval))
    dtype = getattr(aval, "dtype", None)
    return aval.update(dtype=_wide_dtype(dtype)) if _is_narrow(dtype) else aval


def _wide_dtype(dtype: Any) -> Any:
    return np.dtype("complex128" if jnp.issubdtype(dtype, jnp.complexfloating) else "float64")


def _is_narrow(dtype: Any) -> bool:
    if dtype is None or jnp.issubdtype(dtype, jax.dtypes.extended) or dtype == jax.dtypes.float0:
        return False
    return bool(jnp.issubdtype(dtype, jnp.inexact)) and dtype != _wide_dtype(dtype)
