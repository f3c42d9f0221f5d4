"""Judge `--check-gradients` on the derivatives that JAX's own shard_map tests take: as they are, and mutated.

A mutation changes the sums that JAX's rules for transposition write. What is right is not ours: the gradients as JAX
has them are divided into those with the mutation, element by element. A part of the tests is a capture of its own, and
what comes of it is a file of the folder: what is there is not done again.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from shardscope.inspector.capture.protocol.values import Derivative, Gradients
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.report.gradients import wrong_gradients

MUTATIONS = ("as it is", "doubled", "dropped", "mean for a sum")
TESTS_PER_CAPTURE = 10
DEVICES = 8
FINE = ("right, silent", "wrong, found with its factor", "wrong, found")

WRONG_ON_PURPOSE = (
    "test_eager_custom_jvp_basic",
    "test_eager_custom_vjp_basic",
    "test_optimize_remat",
    "test_rewrite_process_custom_vjp_call_match_more_replicated",
)
"""Tests whose own rules are no derivatives, as of 2x the derivative 3, so that it is seen that they are used."""

PROGRAM = '''
import inspect, json, sys, types, unittest
sys.argv = sys.argv[:1]
sys.path.insert(0, {folder!r})
import jax, numpy as np
from jax import lax
from jax._src import api, core, shard_map, test_util
from jax._src.interpreters import ad
from jax._src.lax import parallel

def by_reverse(f, args, *rest, **options):
    modes = options.get("modes") or (rest[1] if len(rest) > 1 else ["rev"])
    if "rev" in modes:
        jax.vjp(f, *args)

test_util.check_grads = by_reverse
import {module} as module

def changed(total, part, axes):
    """What stands in the place of the sum of what each device along the axes has a part of."""
    count = 1
    for axis in axes:
        count *= lax.axis_size(axis)
    if mutation == "doubled":
        return total * count
    if mutation == "mean for a sum":
        return total / count
    return part(axes)

def only_of_the_first(ct, axes):
    first = lax.axis_index(axes) == 0
    return parallel.psum(lax.select(lax.full_like(ct, first, bool), ct, lax.full_like(ct, 0)), axes)

def mutate():
    def of(primitive, part):
        rule = ad.primitive_transposes[primitive]
        def mutated(ct, *args, axes, **params):
            found = rule(ct, *args, axes=axes, **params)
            named = tuple(axis for axis in axes if isinstance(axis, str))
            if type(ct) is ad.Zero or not named or params.get("axis_index_groups"):
                return found
            return [changed(total, lambda axes: part(ct, axes), named) for total in found]
        ad.primitive_transposes[primitive] = mutated

    class Parallel(types.SimpleNamespace):  # as the rule of shard_map itself sees it
        def __getattr__(self, name):
            return getattr(parallel, name)
        def psum(self, ct, axes):
            total = parallel.psum(ct, axes)
            return total if not axes else changed(total, lambda axes: ct, tuple(axes))

    of(parallel.psum_p, lambda ct, axes: ct)
    of(core.pvary_p, only_of_the_first)
    shard_map.lax_parallel = Parallel()

taken = []
inside = False
original = api.vjp

def floating(leaf):
    return jax.numpy.issubdtype(jax.numpy.result_type(leaf), jax.numpy.floating)

def vjp(function, *primals, has_aux=False, **options):
    """As JAX has it; and what it gives is kept, for cotangents that depend on nothing but the number of the call."""
    global inside
    found = original(function, *primals, has_aux=has_aux, **options)
    if inside or any(isinstance(x, core.Tracer) for x in jax.tree.leaves(primals)):
        return found
    inside, random = True, np.random.default_rng(len(taken))
    def weight(leaf):
        shape = np.shape(leaf)
        if not floating(leaf):
            return np.zeros(shape, jax.dtypes.float0)
        value = jax.numpy.asarray(random.normal(size=shape), jax.numpy.result_type(leaf))
        return jax.device_put(value, leaf.sharding) if getattr(leaf, "committed", False) else value
    try:
        call = [[] for _ in primals]
        for _ in range(2):
            gradients = found[1](jax.tree.map(weight, found[0]))
            for primal, gradient, kept_of in zip(primals, gradients, call):
                paths = jax.tree_util.tree_flatten_with_path(primal)[0]
                for (path, leaf), slope in zip(paths, jax.tree.leaves(gradient)):
                    if floating(leaf):
                        kept_of.append([jax.tree_util.keystr(path), np.asarray(slope, "float64").ravel().tolist()])
        taken.append([merged(kept_of) for kept_of in call])
    finally:
        inside = False
    return found

def merged(leaves):
    """Of each array the elements for both cotangents."""
    half = len(leaves) // 2
    return [[path, [*one, *other]] for (path, one), (_, other) in zip(leaves[:half], leaves[half:])]

api.vjp = jax.vjp = vjp

def differentiates(test):
    return any(word in inspect.getsource(getattr(type(test), test._testMethodName)) for word in ("grad", "vjp("))

suites = unittest.defaultTestLoader.loadTestsFromModule(module)
tests = [test for suite in suites for test in suite if differentiates(test)]
tests = [test for test in tests if not test._testMethodName.startswith({wrong!r})]
mutation, start, count, kept = {mutation!r}, {start}, {count}, {kept!r}
if mutation != "as it is":
    mutate()

def program(x):
    if jax.config.jax_enable_x64:  # and not when the function is traced
        result = unittest.TestResult()
        for test in tests[start : start + count]:
            test.run(result)
        with open(kept, "w") as file:
            json.dump({{"taken": taken, "failed": [each.id() for each, _ in result.errors + result.failures]}}, file)
    return x

inputs = (1.0,)
if __name__ == "__main__":
    print(len(tests))
'''


Call = list[list[tuple[str, list[float]]]]
"""What a call of `jax.vjp` gave: for each argument the paths of its arrays, and their gradients' elements."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the tests, with one mutation; and where what comes of it is kept."""

    mutation: str
    start: int
    folder: Path

    @property
    def name(self) -> str:
        """How its files are called."""
        return f"{self.mutation.replace(' ', '_')}_{self.start}"

    def script(self, tests: Path) -> Path:
        """Its program, written."""
        script = self.folder / f"{self.name}.py"
        values = {"folder": str(tests.resolve().parent), "module": tests.stem, "wrong": WRONG_ON_PURPOSE}
        values |= {"mutation": self.mutation, "start": self.start, "count": TESTS_PER_CAPTURE}
        values |= {"kept": str(self.folder / f"{self.name}.taken")}
        script.write_text(PROGRAM.format(**values))
        return script

    def done(self, tests: Path) -> tuple[Gradients, dict[str, list[Call]]]:
        """What shardscope compared, and what JAX gave."""
        kept = self.folder / f"{self.name}.json"
        if not kept.exists():
            capture = last_capture(
                Request(f"{self.script(tests)}:program", live=False, gradients=True, devices=DEVICES)
            )
            assert capture.gradients is not None, capture.failure
            kept.write_text(json.dumps(asdict(capture.gradients)))
            print(self.name, len(capture.gradients.checked), file=sys.stderr, flush=True)
        found = json.loads(kept.read_text())
        checked = tuple(Derivative(**each) for each in found["checked"])
        return Gradients(checked, found["undefined"]), json.loads((self.folder / f"{self.name}.taken").read_text())


def verdicts_on_jax_tests(folder: Path, tests: Path, jobs: int) -> Iterator[tuple[str, str]]:
    """For each derivative that is compared: the mutation, and whether shardscope says what JAX's gradients say."""
    first = Part(MUTATIONS[0], 0, folder).script(tests)
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
        "JAX_PLATFORMS": "cpu",
    }
    count = int(
        subprocess.run([sys.executable, first], check=True, capture_output=True, text=True, env=environment).stdout
    )
    starts = range(0, count, TESTS_PER_CAPTURE)
    parts = [Part(mutation, start, folder) for start, mutation in product(starts, MUTATIONS)]
    with ThreadPoolExecutor(jobs) as pool:
        done = dict(zip(parts, pool.map(lambda part: part.done(tests), parts), strict=True))
    for part, (found, given) in done.items():
        _, as_it_is = done[Part(MUTATIONS[0], part.start, folder)]
        factors = {id(each.derivative): each.factor for each in wrong_gradients(found)}
        for derivative, ratios in _with_ratios(found.checked, given["taken"], as_it_is["taken"]):
            verdict = _verdict(id(derivative) in factors, factors.get(id(derivative)), ratios)
            if verdict not in FINE:
                print(part.name, verdict, derivative, ratios[:8], file=sys.stderr)
            yield part.mutation, verdict


def _with_ratios(
    checked: tuple[Derivative, ...], mutated: list[Call], as_it_is: list[Call]
) -> Iterator[tuple[Derivative, list[float]]]:
    """Each derivative with how many times JAX's own each of its elements is; of calls that both have."""
    left = iter(checked)
    for call, right in zip(mutated, as_it_is, strict=True):
        for leaves, true in zip(call, right, strict=True):
            if not leaves:
                continue
            derivative = next(left, None)
            if derivative is None:
                return
            apart = len(leaves) > 1 and derivative.argument.endswith(leaves[0][0])
            for number, (path, slopes) in enumerate(leaves):
                if apart and number:
                    derivative = next(left)
                    assert derivative.argument.endswith(path), (derivative, path)
                if apart or len(leaves) == 1:
                    yield derivative, _ratios(slopes, true[number][1])
            if not apart and len(leaves) > 1:
                flat = [[slope for _, slopes in of for slope in slopes] for of in (leaves, true)]
                yield derivative, _ratios(*flat)
    assert next(left, None) is None


def _ratios(mutated: list[float], true: list[float]) -> list[float]:
    size = max(map(abs, (*mutated, *true)), default=0)
    return [
        one / other if abs(other) > 1e-9 * size else math.inf
        for one, other in zip(mutated, true, strict=True)
        if max(abs(one), abs(other)) > 1e-9 * size
    ]


def _verdict(is_found: bool, factor: float | None, ratios: list[float]) -> str:
    if all(abs(ratio - 1) < 1e-6 for ratio in ratios):
        return "false alarm" if is_found else "right, silent"
    if not is_found:
        return "missed"
    if any(abs(ratio - ratios[0]) > 1e-6 * abs(ratios[0]) for ratio in ratios):
        return "wrong, found"  # by no single factor
    is_same = factor is not None and abs(factor - ratios[0]) < 1e-3 * abs(ratios[0])
    return "wrong, found with its factor" if is_same else "wrong factor"
