"""A jaxpr evaluated with the blocks of all devices on one device, for gradients that are taken inside of a shard_map.

Sharding constraints are left out, and a shard_map's body runs once for each device of its mesh, all on one, with its
collectives computed among them (`jax.vmap` with an axis name).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from ....catalog.spellings import CONSTRAINTS, rule_of
from ..inputs.context import set_mesh
from ..program import structure
from ..program.avals import entries
from ..subject import meshes_in_context
from .equations import bind
from .probing import Prober
from .several_axes import all_gather, psum_scatter
from .sites import Mapped, Path, When


@dataclass(slots=True)
class Alone(Prober):
    """Probes that run on one device.

    `coarsest` is the largest machine epsilon of a type in which anything was computed so far, `precision` the one of
    each value that is kept, by its key.
    """

    coarsest: float = 0.0
    precision: dict[str, float] = field(default_factory=dict)

    def keep(self, probes: dict[str, Any], path: Path, when: When, position: int, *rest: Any, **options: Any) -> None:
        """Keep the value, and its precision."""
        known = set(probes)
        Prober.keep(self, probes, path, when, position, *rest, **options)
        self.precision |= dict.fromkeys(set(probes) - known, self.coarsest)

    def vary(self, value: Any) -> Any:
        """Nothing is typed here."""
        return value

    def has_sites(self, jaxpr: Any, manual: bool) -> bool:
        """Everything is evaluated: any body may hold a collective."""
        return True

    def equation(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The results, with their precision noted."""
        results, probes = self._computed(equation, path, values)
        types = [
            atom.aval.dtype
            for atom in equation.outvars
            if jnp.issubdtype(getattr(atom.aval, "dtype", None), jnp.inexact)
        ]
        self.coarsest = max([self.coarsest, *(float(jnp.finfo(dtype).eps) for dtype in types)])
        return results, probes

    def _computed(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Collectives whose result is typed invariant are those whose result is not."""
        name, params = equation.primitive.name, equation.params
        rule = rule_of(name)
        if name in CONSTRAINTS or (rule is not None and rule.is_cast):
            return list(values), {}
        if name in ("psum_invariant", "psum2"):
            return [lax.psum(value, params["axes"]) for value in values], {}
        if name in ("all_gather", "all_gather_invariant") and params.get("axis_index_groups") is None:
            (value,) = values
            dimension = params["all_gather_dimension"]
            return [all_gather(value, params["axis_name"], dimension, tiled=params["tiled"])], {}
        if name == "reduce_scatter" and params["axis_index_groups"] is None:
            (value,) = values
            return [psum_scatter(value, params["axis_name"], params["scatter_dimension"], tiled=params["tiled"])], {}
        if name == "ppermute":
            return [_permuted(value, params["axis_name"], params["perm"]) for value in values], {}
        return Prober.equation(self, equation, path, values)

    def bind(self, equation: Any, values: Sequence[Any]) -> list[Any]:
        """Without the mesh around it."""
        return bind(equation, values, in_context=False)

    def shard_map(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """All devices' blocks at once."""
        params = equation.params
        axes = tuple(structure.manual_axes(equation))
        sizes = {axis: int(params["mesh"].shape[axis]) for axis in axes}
        layer = Mapped(axes, tuple(sizes.values()), params["mesh"], structure.is_checked(equation))

        def body(*blocks: Any) -> tuple[list[Any], dict[str, Any]]:
            with self.inside(layer):
                return self.run(params["jaxpr"], blocks, path)

        mapped: Any = body
        for axis in reversed(axes):
            mapped = jax.vmap(mapped, in_axes=0, out_axes=0, axis_name=axis, axis_size=sizes[axis])
        blocks = [split(jnp.asarray(v), spec, axes, sizes) for v, spec in zip(values, params["in_specs"], strict=True)]
        results, probes = mapped(*blocks)
        return [assemble(r, spec, axes) for r, spec in zip(results, params["out_specs"], strict=True)], probes


def on_one() -> AbstractContextManager[Any]:
    """The context of what runs on one device: no mesh in the place of one that is in force.

    A mesh of one device would be no better: literals of a shard_map's body have the types of its own mesh.
    """
    if not any(True for _ in meshes_in_context()):
        return nullcontext()
    return set_mesh(Mesh(np.empty((), dtype=object), ()))


def _permuted(value: Any, axes: Any, pairs: Any) -> Any:
    """A ppermute; JAX has it among values of one device for whole permutations only."""
    everywhere = all_gather(value, axes)
    place = lax.axis_index(axes)
    result = jnp.zeros_like(value)
    for source, target in pairs:
        result = jnp.where(place == target, everywhere[source], result)
    return result


def split(value: Any, spec: Any, axes: tuple[str, ...], sizes: dict[str, int]) -> Any:
    """The blocks of all devices: a leading dimension for each of `axes`, in their order."""
    shape: list[int] = []
    where: dict[str, int] = {}
    for size, names in zip(value.shape, _entries(spec, value.ndim), strict=True):
        for name in names:
            where[name] = len(shape)
            shape.append(sizes[name])
        shape.append(size // math.prod(sizes[name] for name in names))
    named = [where[axis] for axis in axes if axis in where]
    blocks = jnp.moveaxis(value.reshape(shape), named, range(len(named)))
    for number, axis in enumerate(axes):
        if axis not in where:
            blocks = jnp.stack([blocks] * sizes[axis], number)
    return blocks


def assemble(blocks: Any, spec: Any, axes: tuple[str, ...]) -> Any:
    """The value that blocks make; along an axis that the spec does not name, the first one counts."""
    entries = _entries(spec, blocks.ndim - len(axes))
    named = {name for names in entries for name in names}
    for number in reversed(range(len(axes))):
        if axes[number] not in named:
            blocks = blocks[(slice(None),) * number + (0,)]
    left = [axis for axis in axes if axis in named]
    order: list[int] = []
    shape: list[int] = []
    for dimension, names in enumerate(entries):
        order += [left.index(name) for name in names] + [len(left) + dimension]
        shape.append(math.prod(blocks.shape[place] for place in order[len(order) - len(names) - 1 :]))
    return blocks.transpose(order).reshape(shape)


def _entries(spec: Any, rank: int) -> list[tuple[str, ...]]:
    """For each dimension the axes that are named for it."""
    named = [e if isinstance(e, tuple) else () if e is None else (e,) for e in entries(spec)]
    return [*named, *[()] * (rank - len(named))]
