"""What was asked for, against what propagation made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ...parsers.errors import ParseError
from ...parsers.mlir.sdy import DimensionSharding
from ...parsers.sharding_syntax.jax_arrays import parse_array_type, parse_spec
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.model import Value
from ..ir.array_sharding import ArraySharding
from .placement import same
from .spelled import from_spec, from_type

_HELD = re.compile(r"Ref\{(.*)\}", re.DOTALL)
"""The type of a mutable array, around the one of what it holds."""


def requested_sharding(value: Value, meshes: Iterable[MeshSyntax]) -> ArraySharding | None:
    """What an argument or a result was asked to be: by its spec, or by its type on an explicit mesh.

    None where nothing was asked, and where no mesh has the axes that were.
    """
    try:
        type = parse_array_type(_HELD.sub(r"\1", value.type))
        spec = None if value.spec is None else parse_spec(value.spec)
    except ParseError:
        return None
    if spec is None and not any(type.axes) and not type.unreduced:
        return None
    for mesh in meshes:
        try:
            return from_type(type, mesh) if spec is None else from_spec(spec, mesh, len(type.dims))
        except ValueError:
            continue
    return None


def agrees(asked: ArraySharding, got: ArraySharding) -> bool:
    """Whether a value got what was asked; a dimension that was left open may have got more axes."""
    if len(asked.dims) != len(got.dims):
        return False
    filled = tuple(map(_filled, asked.dims, got.dims))
    return same(replace(asked, dims=filled).closed() if asked.mesh == got.mesh else asked.closed(), got.closed())


def _filled(asked: DimensionSharding, got: DimensionSharding) -> DimensionSharding:
    starts_so = got.axes[: len(asked.axes)] == asked.axes
    return DimensionSharding(got.axes) if asked.is_open and starts_so else DimensionSharding(asked.axes)
