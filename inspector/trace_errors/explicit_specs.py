"""Shardings of explicit types, as JAX's messages spell them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

Spec = tuple[tuple[str, ...], ...]
"""The axes of each dimension."""

SPEC = r"P\(((?:[^()]|\([^()]*\))*)\)"

_DIMENSION = re.compile(r"[^,()]*@\([^()]*\)|[^,]+")
_AXIS = re.compile(r"\w+")


def tuples(text: str) -> list[Spec]:
    """`('x', None), (None, ('x', 'y'))`."""
    try:
        found = ast.literal_eval(f"[{text}]")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [tuple(_axes_of(dim) for dim in spec) for spec in found if isinstance(spec, tuple)]


def _axes_of(dim: object) -> tuple[str, ...]:
    if isinstance(dim, tuple):
        return tuple(map(str, dim))
    return () if dim is None else (str(dim),)


def spec_of(text: str) -> Spec:
    """`'x', None`, as in `P('x', None)`, or `'x',`: JAX prints a spec of one entry as a tuple of one."""
    entries = text.strip().removesuffix(",")
    return next(iter(tuples(f"({entries},)" if entries else "()")), ())


def spec_of_type(text: str) -> Spec:
    """`f32[16@x,8@(x,y)]`."""
    inside = text[text.find("[") + 1 : text.rfind("]")]
    return tuple(tuple(_AXIS.findall(dim.partition("@")[2])) for dim in _DIMENSION.findall(inside))


def without(spec: Spec, axes: Iterable[str]) -> Spec:
    """Return a spec without some axes."""
    return tuple(tuple(axis for axis in dim if axis not in set(axes)) for dim in spec)


def axes_text(text: str) -> str:
    """Return the axes in a text as a list of names."""
    return ", ".join(map(repr, _AXIS.findall(text.replace("None", "")))) or "no axis"


def text_of(spec: Spec) -> str:
    """Return a spec as it is written: `P('x', None)`."""
    dims = (repr(dim[0]) if len(dim) == 1 else repr(dim or None) for dim in spec)
    return f"P({', '.join(dims)})"
