"""A traced program without some of its equations: random inputs stand for their float results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax._src import source_info_util

from ....catalog.spellings import CALLED, CALLS
from ..probes.probing import Environment, bind
from ..program import structure
from ..program.structure import opened

Holes = Mapping[int, Sequence[Any]]
"""Values in place of the float results of equations, by the equation's number."""


class Numbered(NamedTuple):
    """An equation, and the lengths of the scans around it. Its number is its place in the list of all."""

    equation: Any
    lengths: tuple[int, ...]

    @property
    def floats(self) -> list[Any]:
        """The types of its results of floats."""
        return [variable.aval for variable in self.equation.outvars if is_float(variable.aval)]


class Cut(NamedTuple):
    """The result that stays, the equation whose results of floats are returned in its place, and those left out."""

    result: int
    end: int | None = None
    dropped: frozenset[int] = frozenset()


def is_float(aval: Any) -> bool:
    """Return whether a type is one of floats."""
    return hasattr(aval, "shape") and jnp.issubdtype(aval.dtype, jnp.inexact)


def numbered(jaxpr: Any, lengths: tuple[int, ...] = ()) -> Iterator[Numbered]:
    """The equations of a jaxpr, of what it calls, and of its scans, each before those inside of it."""
    for equation in opened(jaxpr).eqns:
        yield Numbered(equation, lengths)
        inside = _body(equation)
        if inside is not None:
            is_scan = equation.primitive.name == "scan"
            yield from numbered(inside, (*lengths, equation.params["length"]) if is_scan else lengths)


def _body(equation: Any) -> Any:
    name, params = equation.primitive.name, equation.params
    if name == "scan":
        return None if structure.loop(equation) is None else params["jaxpr"]
    return next((params[key] for key in CALLED if key in params), None) if name in CALLS else None


class CutProgram:
    """The program of a cut, as a function of the program's arguments and of `holes`, whose types it has."""

    def __init__(self, jaxpr: Any, cut: Cut) -> None:
        self._jaxpr, self._cut = jaxpr, cut
        self._ended: list[Any] = []
        every = list(numbered(jaxpr))
        self.holes: dict[int, list[Any]] = {
            number: [jax.ShapeDtypeStruct((*lengths, *aval.shape), aval.dtype) for aval in every[number].floats]
            for number in sorted(cut.dropped)
            for lengths in [every[number].lengths]
        }

    def __call__(self, arguments: Sequence[Any], holes: Holes) -> list[Any]:
        """The results."""
        results = self._run(self._jaxpr, arguments, holes, 0)
        return self._ended if self._cut.end is not None else [results[self._cut.result]]

    def _run(self, jaxpr: Any, inputs: Sequence[Any], holes: Holes, number: int) -> list[Any]:
        environment = Environment(jaxpr, inputs)
        inner = opened(jaxpr)
        for equation in inner.eqns:
            values = [environment.read(atom) for atom in equation.invars]
            source = equation.source_info
            with source_info_util.user_context(source.traceback, name_stack=source.name_stack):
                results = self._results(equation, values, holes, number)
            if number == self._cut.end:
                self._ended = [
                    result for result, of in zip(results, equation.outvars, strict=True) if is_float(of.aval)
                ]
            environment.write(equation.outvars, results)
            number += _count(equation)
        return [environment.read(atom) for atom in inner.outvars]

    def _results(self, equation: Any, values: list[Any], holes: Holes, number: int) -> list[Any]:
        floats = [is_float(variable.aval) for variable in equation.outvars]
        given = holes.get(number)
        if given is not None and all(floats):
            return list(given)
        results = self._evaluated(equation, values, holes, number)
        if given is None:
            return results
        rest = iter(given)
        return [next(rest) if is_hole else result for is_hole, result in zip(floats, results, strict=True)]

    def _evaluated(self, equation: Any, values: list[Any], holes: Holes, number: int) -> list[Any]:
        body = _body(equation)
        if body is None:
            return bind(equation, values)
        if equation.primitive.name != "scan":
            held = lax.optimization_barrier(tuple(values)) if equation.params.get("prevent_cse") else values
            return self._run(body, held, holes, number + 1)
        params = equation.params
        constants, carried = structure.loop(equation) or (0, 0)
        inside = {each: holes[each] for each in range(number + 1, number + _count(equation)) if each in holes}

        def step(carry: Sequence[Any], slices: Any) -> tuple[list[Any], list[Any]]:
            results = self._run(body, [*values[:constants], *carry, *slices[0]], slices[1], number + 1)
            return results[:carried], results[carried:]

        carry, rest = lax.scan(
            step,
            values[constants : constants + carried],
            (values[constants + carried :], inside),
            params["length"],
            params["reverse"],
            params["unroll"],
        )
        return [*carry, *rest]


def _count(equation: Any) -> int:
    body = _body(equation)
    return 1 + (0 if body is None else sum(map(_count, opened(body).eqns)))
