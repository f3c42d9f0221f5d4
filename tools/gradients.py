"""Prove `--check-gradients` by mutation: `python tools/gradients.py [--mutations N] [--jax-tests FILE]`.

Hundreds of losses are generated whose backward passes have a psum doubled, dropped, over another axis, or a mean in its
place, on several meshes. Each is judged by shardscope, and by central differences in float64 that this file takes
itself, along three other directions. `--jax-tests` takes `tests/shard_map_test.py` of JAX's repository, of the version
that is installed: every derivative that its tests take is compared as well. Exit status 1 where the two disagree.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jax_gradients import FINE, verdicts_on_jax_tests
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.report.gradients import wrong_gradients

MESHES = ("(2, 4)", "(4, 2)", "(1, 8)", "(8, 1)")
LOSSES_PER_CAPTURE = 25

SUMS = {
    "same": "lambda g: g",
    "psum": "lambda g: lax.psum(g, {axis!r})",
    "psum twice": "lambda g: lax.psum(lax.psum(g, {axis!r}), {axis!r})",
    "pmean": "lambda g: lax.pmean(g, {axis!r})",
    "psum, pmean": "lambda g: lax.pmean(lax.psum(g, {axis!r}), {axis!r})",
    "pmax": "lambda g: lax.pmax(g, {axis!r})",
    "other psum": "lambda g: lax.psum(g, {other!r})",
    "other pmean": "lambda g: lax.pmean(g, {other!r})",
    "psum over both": "lambda g: lax.psum(g, ('data', 'model'))",
}
"""What a mutated backward pass does to a cotangent, of which one is right."""

PROGRAMS = Path(__file__).parents[1] / "tests" / "findings" / "programs"

HEAD = f'''
import sys
sys.path.insert(0, {str(PROGRAMS)!r})
import jax, jax.numpy as jnp, numpy as np
from gradients import columns, rows
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

def mesh_of(shape):
    return jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)

def primal(shape, change, check):
    """What is mutated is the function itself: JAX derives its gradient, which has to be right."""
    def body(x, w):
        y = change(jnp.tanh(x @ w))
        return lax.psum((y * y).sum(), ("data", "model"))
    mesh, specs = mesh_of(shape), (P("data"), P(None, "model"))
    def shared(x, w):
        y = change(jnp.tanh(x @ w))
        type = jax.typeof(y)
        varying = type.mat.varying if hasattr(type, "mat") else type.vma
        y = lax.pcast(y, tuple(axis for axis in ("data", "model") if axis not in varying), to="varying")
        return lax.psum((y * y).sum(), ("data", "model"))
    return jax.shard_map(shared if check else body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=check)
'''

TAIL = '''
def program(x, w):
    return [jax.grad(loss, argnums=(0, 1))(x, w) for loss in losses]

random = np.random.default_rng(7)
inputs = tuple(jnp.asarray(random.normal(size=(8, 8)) / 2, "float32") for _ in range(2))

def measured():
    """For each loss and argument: the ratios of gradient and differences along three directions, in float64."""
    jax.config.update("jax_enable_x64", True)
    at = [np.asarray(x, "float64") for x in inputs]
    for loss in losses:
        loss = jax.jit(loss)
        gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(*at)
        for number in range(2):
            ratios = []
            for _ in range(3):
                v, h = random.normal(size=at[number].shape), 1e-4
                moved = lambda step: float(loss(*(x + step * v if n == number else x for n, x in enumerate(at))))
                true = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
                ratios.append(float((np.asarray(gradients[number]) * v).sum()) / true)
            yield ratios

if __name__ == "__main__":
    import json
    print(json.dumps(list(measured())))
'''


def mutations(shape: str) -> Iterator[tuple[str, str]]:
    """A name for each loss on a mesh, of its kind and change, and its text."""

    def change(name: str, axis: str) -> str:
        return f"({SUMS[name].format(axis=axis, other='data' if axis == 'model' else 'model')})"

    for for_x, for_w in itertools.product(SUMS, SUMS):
        if "same" in (for_x, for_w):
            what = for_x if for_w == "same" else for_w
            yield f"columns: {what}", f"columns({change(for_x, 'model')}, {change(for_w, 'data')}, mesh_of({shape}))"
    for before, layers in itertools.product(SUMS, (1, 2, 3)):
        yield f"rows: {before}", f"rows({change(before, 'model')}, mesh_of({shape}), {layers})"
    for name, axis, check in itertools.product(SUMS, ("data", "model"), (True, False)):
        if name != "pmax":  # which JAX does not differentiate
            yield f"primal: {name}", f"primal({shape}, {change(name, axis)}, {check})"


def judged(folder: Path, losses: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """For each loss and argument its name, and whether shardscope says what the differences of this file say."""
    script = folder / "losses.py"
    script.write_text(f"{HEAD}\nlosses = [{', '.join(text for _, text in losses)}]\n{TAIL}")
    environment = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu", "PATH": ""}
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True, env=environment)
    measured = json.loads(done.stdout)
    capture = last_capture(Request(f"{script}:program", live=False, gradients=True, devices=8))
    found = _factors(capture)
    names = [name for name, _ in losses for _ in range(2)]
    for name, ratios, factor in zip(names, measured, found, strict=True):
        is_right = all(abs(ratio - 1) < 1e-3 for ratio in ratios)
        is_constant = max(ratios) - min(ratios) < 1e-3 * abs(max(ratios, key=abs))
        if is_right:
            yield name, "right, silent" if factor == 1 else "false alarm"
        elif factor == 1:
            yield name, "missed"
        elif not is_constant:
            yield name, "wrong, found"  # by no single factor
        else:
            is_same = factor is not None and abs(factor - ratios[0]) < 1e-3 * abs(ratios[0])
            yield name, "wrong, found with its factor" if is_same else "wrong factor"


def _factors(capture: Capture) -> list[float | None]:
    """The factor of each derivative; 1 of those that are right."""
    assert capture.gradients is not None, capture.failure
    wrong = {id(each.derivative): each.factor for each in wrong_gradients(capture.gradients)}
    return [wrong.get(id(each), 1.0) for each in capture.gradients.checked]


def main() -> int:
    """Print a table, a row for each kind of change."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--mutations", type=int, default=10**6, help="the most losses that are tried")
    parser.add_argument("--jax-tests", type=Path, help="JAX's tests/shard_map_test.py")
    parser.add_argument("--kept", type=Path, help="a folder for what comes of JAX's tests, and of which it is taken")
    parser.add_argument("--jobs", type=int, default=1, help="how many captures of JAX's tests go on at once")
    options = parser.parse_args()
    losses = [list(mutations(shape))[: options.mutations // len(MESHES)] for shape in MESHES]  # one mesh a program
    table: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for there in losses:
            for start in range(0, len(there), LOSSES_PER_CAPTURE):
                for name, verdict in judged(Path(folder), there[start : start + LOSSES_PER_CAPTURE]):
                    table.setdefault(name, Counter())[verdict] += 1
                print(sum(verdicts.total() for verdicts in table.values()), "gradients", file=sys.stderr)
        if options.jax_tests is not None:
            kept = options.kept or Path(folder)
            kept.mkdir(parents=True, exist_ok=True)
            for mutation, verdict in verdicts_on_jax_tests(kept, options.jax_tests, options.jobs):
                table.setdefault(f"JAX's tests: {mutation}", Counter())[verdict] += 1
    print("| change | gradients | right, silent | wrong, found with its factor | wrong, found | otherwise |")
    print("|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for name, verdicts in table.items():
        total += verdicts
        print(_row(name, verdicts))
    print(_row(f"all, {sum(map(len, losses))} losses", total))
    return 1 if set(total) - set(FINE) else 0


def _row(name: str, verdicts: Counter[str]) -> str:
    others = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if verdict not in FINE)
    cells = (name, str(verdicts.total()), *(str(verdicts[each]) for each in FINE), others or "0")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
