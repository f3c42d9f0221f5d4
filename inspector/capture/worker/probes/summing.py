"""Summaries of the values inside a program: two runs are compared by them, and NaNs are followed to their origin.

Each result of floats is reduced, where it is computed, to its norm, its products with two fixed vectors, and the number
of its NaNs. So no value is moved or kept, and a run on many devices is compared with one on a single device.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...protocol.values import Summaries, Summary
from ..inputs.wrappers import compiled_quickly, jax_jit
from ..program.jaxpr_facts import Table
from ..program.structure import bodies, line_of, opened
from . import live
from .probing import Prober
from .sites import Path, Run, When

MAX_SUMMARIES = 20_000

_ODD = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35, 0x27D4EB2F, 0x165667B1)
"""Multipliers that spread the bits of an index, one for each dimension."""


@dataclass(slots=True)
class Summing(Prober):
    """Evaluates a jaxpr with a summary of each result.

    `coarsest` is the largest machine epsilon of a type in which anything was computed so far, `precision` the one of
    each summary, by its equation and position. `equations` are those that were met, by their paths, `fixed` variables
    that depend on no argument: on one device a number of elements is another one, too.
    """

    coarsest: float = 0.0
    precision: dict[tuple[Path, int], float] = field(default_factory=dict)
    equations: dict[Path, Any] = field(default_factory=dict)
    fixed: set[Any] = field(default_factory=set)

    def equation(self, equation: Any, path: Path, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The results, with their precision noted."""
        self.equations[path] = equation
        if all(hasattr(atom, "val") or atom in self.fixed for atom in equation.invars):
            self.fixed.update(equation.outvars)
        found = Prober.equation(self, equation, path, values)
        floats = [atom.aval.dtype for atom in equation.outvars if _is_float(atom.aval)]
        self.coarsest = max([self.coarsest, *(float(jnp.finfo(dtype).eps) for dtype in floats)])
        return found

    def keep_all(self, probes: dict[str, Any], path: Path, when: When, values: Sequence[Any], atoms: Any) -> None:
        """Keep a summary of each result of floats."""
        for position, (value, atom) in enumerate(zip(values, atoms, strict=True)):
            if when == "after" and _is_float(atom.aval) and type(atom).__name__ != "DropVar" and atom not in self.fixed:
                self.keep(probes, path, when, position, summary_of(value), atom.aval)
                self.precision[path, position] = self.coarsest


def _is_float(aval: Any) -> bool:
    return hasattr(aval, "shape") and jnp.issubdtype(getattr(aval, "dtype", None), jnp.floating)


def summary_of(value: Any) -> Any:
    """The norm of the finite elements, their products with two fixed vectors, and the number of NaNs."""
    wide = value.astype(jnp.float64 if value.dtype == jnp.float64 else jnp.float32)
    finite = jnp.where(jnp.isfinite(wide), wide, 0)
    products = [jnp.sum(finite * _vector(value.shape, seed).astype(wide.dtype)) for seed in (1, 2)]
    nans = jnp.sum(jnp.isnan(wide), dtype=wide.dtype)
    return jnp.stack([jnp.sqrt(jnp.sum(finite * finite)), *products, nans])


def _vector(shape: tuple[int, ...], seed: int) -> Any:
    """Numbers between -0.5 and 0.5 that depend on their place alone, in exact arithmetic."""
    mixed = jnp.full(shape, np.uint32(seed * _ODD[-1] & 0xFFFFFFFF), jnp.uint32)
    for dimension in range(len(shape)):
        mixed = mixed + lax.broadcasted_iota(jnp.uint32, shape, dimension) * np.uint32(_ODD[dimension % len(_ODD)])
        mixed = (mixed ^ (mixed >> 15)) * np.uint32(_ODD[1])
        mixed = mixed ^ (mixed >> 13)
    return (mixed >> 8).astype(jnp.float32) * np.float32(2**-24) - np.float32(0.5)


class Summed:
    """One run of a traced program with summaries."""

    def __init__(self, traced: Any, table: Table, inputs: live.Inputs, iterations: tuple[int, ...]) -> None:
        self._jaxpr = traced.jaxpr
        self._prober = Summing(table.indices, lambda *_: True, digests=False, iterations=iterations)
        lowered = jax_jit(lambda *leaves: self._prober.run(traced.jaxpr, leaves)[1]).lower(*inputs.leaves)
        arrays = compiled_quickly(lowered)(*live.fresh(inputs))
        self._arrays = {key: np.asarray(array) for key, array in arrays.items()}
        self._run = Run(self._prober.sites, self._arrays)

    def summaries(self) -> Summaries:
        """The summaries that are the same on all devices, in program order."""
        found: list[Summary] = []
        for key, site in self._prober.sites.items():
            if site.when != "after":
                continue
            equation = self._prober.equations[site.path]
            aval = equation.outvars[site.position].aval
            for iteration, readings in self._run.by_iteration(site).items():
                held = {tuple(self._arrays[key][reading.at].tolist()) for reading in readings}
                figures = np.array(held.pop())
                if held or len(found) == MAX_SUMMARIES or not np.isfinite(figures).all():
                    continue
                norm, one, other, nans = map(float, figures)
                epsilon = self._prober.precision[site.path, site.position]
                line, name = line_of(equation), equation.primitive.name
                shape = f"{aval.dtype}{list(aval.shape)}"
                where = (site.path, site.position, iteration)
                found.append(Summary(*where, name, shape, (norm, one, other), int(nans), epsilon, line))
        return Summaries(tuple(found))

    def origin_of_nan(self) -> tuple[str, str | None] | None:
        """The operation in which the NaNs of the results begin, in words, and its line; None where it is not known."""
        self._nans = {key: counts for key, counts in self._counts_of_nans() if counts}
        self._inside: dict[Path, list[Path]] = {}
        for path in self._prober.equations:
            self._inside.setdefault(path[:-1], []).append(path)
        found = self._origin(opened(self._jaxpr).outvars, (), ())
        if found is None:
            return None
        path, iteration = found
        equation = self._prober.equations[path]
        line = line_of(equation)
        at = f" ({os.path.basename(line.file)}:{line.line})" if line else ""
        within = f", in iteration {', '.join(map(str, iteration))} of its loop" if iteration else ""
        text = f"NaN begins in {equation.primitive.name}{at}{within}: its operands have none"
        return text, f"{line.file}:{line.line}" if line else None

    def _counts_of_nans(self) -> Iterator[tuple[tuple[Path, int], dict[tuple[int, ...], int]]]:
        """The iterations in which a result has NaNs on any device, with their number."""
        for key, site in self._prober.sites.items():
            if site.when == "after":
                counts = {
                    iteration: int(max(self._arrays[key][reading.at][3] for reading in readings))
                    for iteration, readings in self._run.by_iteration(site).items()
                }
                yield (site.path, site.position), {each: count for each, count in counts.items() if count}

    def _origin(
        self, wanted: Sequence[Any], around: Path, iteration: tuple[int, ...]
    ) -> tuple[Path, tuple[int, ...]] | None:
        """Follow NaNs back from variables of the body of an equation, in one iteration of the loops around it."""
        paths = self._inside.get(around, [])
        makers = {
            atom: (number, path, position)
            for number, path in enumerate(paths)
            for position, atom in enumerate(self._prober.equations[path].outvars)
            if iteration in self._nans.get((path, position), ())
        }
        waiting, origins, seen = [atom for atom in wanted if not hasattr(atom, "val")], [], set()
        while waiting:
            maker = makers.get(waiting.pop())
            if maker is None or maker in seen:
                continue
            seen.add(maker)
            operands = [atom for atom in self._prober.equations[maker[1]].invars if not hasattr(atom, "val")]
            came = [atom for atom in operands if atom in makers]
            waiting += came
            origins += [] if came else [maker]
        if not origins:
            return None
        _, path, _ = min(origins)
        equation = self._prober.equations[path]
        for body in bodies(equation):
            for inside in self._iterations(path, iteration):
                if (found := self._origin(body.outvars, path, inside)) is not None:
                    return found
        return path, iteration

    def _iterations(self, loop: Path, iteration: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The iterations in which anything in a body is NaN, in order; the one around where it is no loop's."""
        found = {each for (path, _), counts in self._nans.items() if path[:-1] == loop for each in counts}
        return sorted(each for each in found if each[: len(iteration)] == iteration)
