"""The search for the smallest program that differs: each candidate is lowered, compiled and evaluated."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from ...protocol.case import SMALLER
from ...protocol.request import Request
from ...protocol.trace import Value
from ...protocol.wire import FrameError, read
from ...protocol.workspace import COMPILER_LOG, EVERY_PASS, compiler_options, diverted
from ..case import write_case
from ..inputs.arguments import MAX_INTEGER, is_abstract
from ..inputs.callables import Arguments
from ..inputs.context import spec_of
from ..inputs.wrappers import jax_jit
from ..program.avals import type_text
from ..program.compiled import TracedProgram
from ..simulated.topology import Topology
from ..stages import compile_for, lower_for
from .equations import Cut, CutProgram, numbered

EVALUATION_S = 20.0
"""Seconds for which a candidate is evaluated."""


class Reduction:
    """Candidates for the place of a program that differs; the folder `SMALLER` has the case of the last that did.

    Only those that differ after the same pass of the compiler count: others show another fault.
    """

    def __init__(self, request: Request, workspace: str, topology: Topology | None) -> None:
        assert request.case is not None
        self._request, self._topology = request, topology
        self._workspace = Path(workspace)
        self._folder = Path(request.case)
        self._deadline = time.monotonic() + request.case_seconds
        self._operations = 0
        self._result = request.case_result
        self._pass: str | None = None

    def run(self, given: Arguments, program: TracedProgram, traced: Callable[[Arguments], TracedProgram]) -> None:
        """Make the arguments smaller, then the program; the case has the modules after all passes."""
        with suppress(subprocess.SubprocessError):  # it takes too long: the first candidate's pass counts
            self._pass = _pass_of(self._evaluated(self._folder))
        refused: set[Key] = set()
        while True:
            for key, change in smaller_arguments(given):
                if key in refused:
                    continue
                found = self._attempt(partial(_changed, change, traced))
                if found is not None:
                    given, program = found
                    break
                refused.add(key)
            else:
                break
        self._cut(program)

    def _attempt(self, make: Callable[[], tuple[Any, TracedProgram]], *, is_cut: bool = False) -> Any:
        """The candidate that is made, if it differs and there is time; a cut has to have fewer operations."""
        if time.monotonic() > self._deadline:
            return None
        place = self._folder / "candidate"
        shutil.rmtree(place, ignore_errors=True)
        try:
            made = make()
            lowered = lower_for(self._topology, made[1])
            operations = str(lowered.as_text()).count(" = ")
            if is_cut and operations >= self._operations > 0:
                return None
            self._write(made[1], lowered, place)
            if self._evaluated(place) is None:
                return None
            self._write(made[1], lowered, place, EVERY_PASS)
            found = self._evaluated(place)
            if found is None or self._pass not in (None, _pass_of(found)):
                return None
        except Exception:  # JAX or the compiler refuses the candidate
            return None
        self._operations, self._pass = operations, _pass_of(found)
        self._result = max(enumerate(found["outputs"]), key=lambda each: each[1]["error"])[0]
        shutil.rmtree(self._folder / SMALLER, ignore_errors=True)
        place.rename(self._folder / SMALLER)
        return made

    def _evaluated(self, place: Path) -> dict[str, Any] | None:
        """The validation of a case, as JSON has it; None unless it differs."""
        command = [*self._request.case_evaluator, str(place), str(EVALUATION_S)]
        done = subprocess.run(command, capture_output=True, check=True, timeout=3 * EVALUATION_S)
        try:
            *_, (found, _) = read(BytesIO(done.stdout))
        except (FrameError, ValueError):
            return None
        return found if found["status"] == "differs" else None

    def _write(self, program: TracedProgram, lowered: Any, place: Path, passes: str | None = None) -> None:
        dump = self._workspace / "candidate"
        shutil.rmtree(dump, ignore_errors=True)
        options = compiler_options(str(dump), passes or "^$", in_full=True)
        with diverted(self._workspace / COMPILER_LOG):
            compiled, devices = compile_for(self._topology, lowered, options)
        executable = compiled.executable if self._topology is not None else compiled.runtime_executable()
        shown = str(dump) if passes else None
        write_case(str(place), self._request, program, lowered, executable, devices, shown)

    def _cut(self, program: TracedProgram) -> None:
        """Try the program with one result, ended and without equations as far as the difference stays."""
        every = list(numbered(program.jaxpr))
        cut = Cut(self._result)

        def holds(candidate: Cut) -> bool:
            nonlocal cut
            is_held = self._attempt(lambda: (candidate, cut_program(program, candidate)), is_cut=True) is not None
            cut = candidate if is_held else cut
            return is_held

        self._operations = 0
        if not holds(cut):
            return
        ends = [number for number, each in enumerate(every) if not each.lengths and each.floats]
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(cut._replace(end=ends[middle])) else (middle + 1, high)
        numbers = [number for number, each in enumerate(every) if each.floats and number != cut.end]
        size = (len(numbers) + 1) // 2
        while size:
            for start in range(0, len(numbers), size):
                holds(cut._replace(dropped=cut.dropped | set(numbers[start : start + size])))
            size //= 2


def _pass_of(found: Mapping[str, Any] | None) -> str | None:
    return found["differing_pass"]["name"] if found and found.get("differing_pass") else None


def _changed(
    change: Callable[[], Arguments], traced: Callable[[Arguments], TracedProgram]
) -> tuple[Arguments, TracedProgram]:
    given = change()
    return given, traced(given)


def cut_program(program: TracedProgram, cut: Cut) -> TracedProgram:
    """The program of a cut, with the arguments' shardings, and the result's if that is of the result's type."""
    function = CutProgram(program.jaxpr, cut)
    leaves = list(program.leaves[: len(program.arguments)])
    mesh = next(
        each.mesh for leaf in program.leaves if isinstance(each := getattr(leaf, "sharding", leaf), NamedSharding)
    )
    shardings = [None if each.spec is None else NamedSharding(mesh, spec_of(each.spec)) for each in program.arguments]
    kept = program.outputs[cut.result]

    def results(arguments: Sequence[Any], holes: dict[int, list[Any]]) -> list[Any]:
        found = function(arguments, holes)
        if kept.spec is None:
            return found
        sharding = NamedSharding(mesh, spec_of(kept.spec))
        alike = [type_text(jax.typeof(each)) == kept.type for each in found]
        constrained = jax.lax.with_sharding_constraint
        return [constrained(each, sharding) if like else each for each, like in zip(found, alike, strict=True)]

    types = [
        jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) if hasattr(leaf, "shape") else leaf
        for leaf, sharding in zip(leaves, shardings, strict=True)
    ]
    traced = jax_jit(results).trace(types, function.holes)
    holes = [each for number in function.holes for each in function.holes[number]]
    return TracedProgram(
        traced.jaxpr,
        (*program.arguments, *(Value(f"value[{number}]", str(each)) for number, each in enumerate(holes))),
        tuple(Value(kept.path if cut.end is None else "result", str(each)) for each in traced.jaxpr.out_avals),
        [*leaves, *holes],
        traced.lower,
    )


Key = tuple[str, int, int]
"""A list or a dimension, its size, and its new one."""


def smaller_arguments(given: Arguments) -> Iterator[tuple[Key, Callable[[], Any]]]:
    """Changes of arguments, each with a function that makes it: lists first, then dimensions, the largest first.

    Lists of one length are shortened together, and so are dimensions of one size.
    """
    lengths = {len(each) for argument in (*given[0], *given[1].values()) for each in _lists(argument)}
    for length in sorted(lengths, reverse=True):
        for shorter in {1, length // 2}:
            yield ("list", length, shorter), partial(_shorter, given, length, shorter)
    leaves = [leaf for leaf in jax.tree.leaves(given) if _is_array(leaf)]
    has_indices = any(is_abstract(leaf) and jnp.issubdtype(leaf.dtype, jnp.integer) for leaf in leaves)
    least = MAX_INTEGER if has_indices else 1  # abstract integers are indices below it
    for size in sorted({size for leaf in leaves for size in leaf.shape}, reverse=True):
        for smaller in (size // 8, size // 2):
            if smaller >= least and size % smaller == 0:
                change = partial(_resized, size=size, smaller=smaller)
                yield ("dimension", size, smaller), partial(jax.tree.map, change, given)


def _is_array(leaf: Any) -> bool:
    is_key = jnp.issubdtype(getattr(leaf, "dtype", bool), jax.dtypes.prng_key)
    return not is_key and (isinstance(leaf, jax.Array | np.ndarray) or is_abstract(leaf))


def _lists(value: Any) -> Iterator[Any]:
    """The lists and tuples in a value whose elements are alike."""
    is_list = type(value) in (list, tuple)
    if is_list and len(value) > 1 and len(set(map(_outline, value))) == 1:
        yield value
    for each in value if is_list else value.values() if isinstance(value, dict) else ():
        yield from _lists(each)


def _outline(value: Any) -> str:
    return str(jax.tree.map(lambda leaf: getattr(leaf, "shape", type(leaf)), value))


def _shorter(given: Arguments, length: int, shorter: int) -> Arguments:
    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return type(value)((name, change(each)) for name, each in value.items())
        if type(value) not in (list, tuple):
            return value
        is_alike = len(value) == length and len(set(map(_outline, value))) == 1
        return type(value)(map(change, value[:shorter] if is_alike else value))

    return tuple(map(change, given[0])), change(given[1])


def _resized(leaf: Any, size: int, smaller: int) -> Any:
    """The beginning of an array along dimensions of a size; integers that may be indices into one stay in range."""
    if not _is_array(leaf):
        return leaf
    shape = tuple(smaller if each == size else each for each in leaf.shape)
    if is_abstract(leaf):
        return jax.ShapeDtypeStruct(shape, leaf.dtype, sharding=leaf.sharding)
    whole = np.asarray(leaf)
    values = whole[tuple(map(slice, shape))]
    if jnp.issubdtype(leaf.dtype, jnp.integer) and smaller <= whole.max(initial=0) < size:
        values = values % smaller
    return jax.device_put(values, leaf.sharding) if isinstance(leaf, jax.Array) else values
