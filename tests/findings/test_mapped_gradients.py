"""Gradients taken inside of a shard_map, against the gradient that one device computes of the loss that is returned."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Finding

from tests.findings.trying import verified
from tests.sweeps import THOROUGH, sampled

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX gradients are not checked")

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
copies = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False)
typed = partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()))
blocks = partial(jax.shard_map, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=(P("data"), P()), check_vma=False)
columns = partial(
    jax.shard_map, mesh=mesh, in_specs=(P(None, "model"), P("data")), out_specs=(P(None, "model"), P()), check_vma=False
)

def own(w, a):
    return jnp.mean(jnp.tanh(a @ w) ** 2)

def gathered(w, a):
    return own(lax.all_gather(w, "data", tiled=True), a)

def both(loss, w, a):
    value, gradient = jax.value_and_grad(loss)(w, a)
    return gradient, value

@copies
def means(w, a):
    return jax.tree.map(lambda leaf: lax.pmean(leaf, "data"), both(own, w, a))

@copies
def sums(w, a):
    gradient, value = both(own, w, a)
    return lax.psum(gradient, "data"), lax.psum(value, "data")

@copies
def sum_for_mean(w, a):
    gradient, value = both(own, w, a)
    return lax.psum(gradient, "data"), lax.pmean(value, "data")

@copies
def mean_for_sum(w, a):
    gradient, value = both(own, w, a)
    return lax.pmean(gradient, "data"), lax.psum(value, "data")

@copies
def doubled(w, a):
    gradient, value = both(own, w, a)
    gradient = lax.pmean(gradient, "data")
    return lax.psum(gradient, ("data", "model")), lax.pmean(value, "data")

@copies
def mean_by_hand(w, a):
    gradient, value = both(own, w, a)
    total = lax.psum(gradient, "data")
    return total / 4, lax.pmean(value, "data")

@copies
def mean_in_the_loss(w, a):
    gradient, value = both(lambda w, a: lax.pmean(own(w, a), "data"), w, a)
    return lax.pmean(gradient, "data"), value

@copies
def microbatches(w, a):
    def add(total, a):
        return jax.tree.map(jnp.add, total, both(own, w, a)), None
    total, _ = lax.scan(add, (jnp.zeros_like(w), 0.0), a.reshape(2, -1, a.shape[1]))
    return jax.tree.map(lambda leaf: lax.pmean(leaf, "data") / 2, total)

@copies
def microbatches_summed(w, a):
    def add(total, a):
        return jax.tree.map(jnp.add, total, both(own, w, a)), None
    (gradient, value), _ = lax.scan(add, (jnp.zeros_like(w), 0.0), a.reshape(2, -1, a.shape[1]))
    gradient = lax.psum(gradient, "data")
    return gradient / 2, lax.pmean(value, "data") / 2

@copies
def scattered(w, a):
    gradient, value = both(own, w, a)
    block = lax.psum_scatter(gradient, "data", tiled=True) / 4
    return lax.all_gather(block, "data", tiled=True), lax.pmean(value, "data")

@typed
def typed_loss(w, a):
    return both(lambda w, a: lax.pmean(own(w, a), "data"), w, a)

@typed
def typed_mean_of_what_is_summed(w, a):
    gradient, value = both(own, w, a)
    return lax.pmean(gradient, "data"), lax.pmean(value, "data")

@blocks
def of_blocks(w, a):
    gradient, value = both(gathered, w, a)
    return gradient / lax.axis_size("data"), lax.pmean(value, "data")

@blocks
def of_blocks_not_divided(w, a):
    gradient, value = both(gathered, w, a)
    return gradient, lax.pmean(value, "data")

@jax.custom_vjp
def total(x):
    return lax.psum(x, "model")

total.defvjp(lambda x: (total(x), None), lambda _, g: (g,))

@columns
def of_columns(w, a):
    return jax.tree.map(lambda leaf: lax.pmean(leaf, "data"), both(lambda w, a: total(own(w, a)) / 2, w, a))

@columns
def of_columns_by_psum(w, a):
    loss = lambda w, a: lax.psum(own(w, a), "model") / 2
    return jax.tree.map(lambda leaf: lax.pmean(leaf, "data"), both(loss, w, a))

EVERY = [
    means, sums, sum_for_mean, mean_for_sum, doubled, mean_by_hand, mean_in_the_loss, microbatches, microbatches_summed,
    scattered, typed_loss, typed_mean_of_what_is_summed, of_blocks, of_blocks_not_divided,
    of_columns, of_columns_by_psum,
]
STEPS = [EVERY[number] for number in NUMBERS]

def steps(w, a):
    return [step(w, a) for step in STEPS]

@jax.jit
def ratios(w, a):
    true, value = jax.grad(own)(w, a), own(w, a)
    return jnp.stack([jnp.vdot(gradient, true) / jnp.vdot(true, true) * value / loss for gradient, loss in steps(w, a)])

@jax.jit
def step(w, a):
    return sum_for_mean(w, a)

inputs = (jnp.sin(jnp.arange(128.0)).reshape(16, 8), jnp.sin(jnp.arange(512.0)).reshape(32, 16))
"""


STEPS = list(range(16)) if THOROUGH else [0, 2, 5]
"""Those of the script's functions that are tried."""

RATIOS = [1, 1, 4, 1 / 4, 8, 1, 1, 1, 4, 1, 1, 4, 1, 4, 1, 2]


def _true_ratios(script: Path) -> list[float]:
    """The numbers that a script's `ratios` gives, by JAX on one device."""
    capture = last_capture(Request(f"{script}:ratios", probe="none"))
    assert capture.execution is not None, capture.failure
    (output,) = capture.execution.outputs
    assert output.values is not None
    return [float(each) for each in output.values.strip("[]").replace(",", " ").split()]


def _found(script: Path, name: str) -> list[Finding]:
    capture = last_capture(Request(f"{script}:{name}", probe="none", gradients=True))
    assert capture.complete, capture.failure
    assert capture.reference is not None
    assert capture.reference.undefined is None
    return [each for each in inspect(capture).findings if each.rule == "SS24"]


def _times(finding: Finding) -> float:
    return float(finding.message.partition(" is ")[2].partition(" ")[0])


@pytest.mark.once
def test_what_differs_from_the_gradient_of_one_device_is_found(tmp_path: Path) -> None:
    """But for a mean that is divided by a constant, which on one device is another gradient: that is a note."""
    script = tmp_path / "script.py"
    script.write_text(f"NUMBERS = {STEPS}\n{SCRIPT}")
    true = _true_ratios(script)
    assert true == pytest.approx([RATIOS[number] for number in STEPS], rel=1e-3)

    found = _found(script, "steps")
    of_step = {int(each.subject.partition("[")[2].partition("]")[0]): each for each in found}
    errors = {number: _times(each) for number, each in of_step.items() if each.severity == "error"}
    wrong = {number: ratio for number, ratio in enumerate(true) if abs(ratio - 1) > 1e-3}
    assert errors == pytest.approx(wrong, rel=1e-3)
    notes = {STEPS[number] for number, each in of_step.items() if each.severity == "info"}
    assert notes == {5, 9} & {*STEPS}  # mean_by_hand, scattered


NARROW = """
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
half = jnp.bfloat16

def asserted(w, a):
    assert w.dtype == jnp.float32
    return jnp.mean(jnp.tanh(a @ w) ** 2)

def in_halves(w, a):
    return jnp.mean(jnp.tanh(a.astype(half) @ w.astype(half)).astype(jnp.float32) ** 2)

def embedded(w, a):
    rows = jnp.take(w.astype(half), (a[:, 0] * 5).astype(jnp.int32) % 16, axis=0)
    return jnp.mean(jax.nn.softmax(rows.astype(jnp.float32)) ** 2)

def recomputed(w, a):
    layer = jax.checkpoint(lambda y, _: (jnp.tanh(y + (a.astype(half) @ w.astype(half)).astype(jnp.float32)), None))
    return jnp.mean(lax.scan(layer, jnp.zeros((a.shape[0], 8), jnp.float32), None, length=2)[0] ** 2)

LOSSES = [[asserted, in_halves, embedded, recomputed][number] for number in NUMBERS]

def step(loss, reduce, w, a):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False)
    def mapped(w, a):
        value, gradient = jax.value_and_grad(loss)(w, a)
        return reduce(gradient, "data"), lax.pmean(value, "data")
    return mapped(w, a)

def steps(w, a):
    return [step(loss, reduce, w, a) for loss in LOSSES for reduce in (lax.pmean, lax.psum)]

@jax.jit
def ratios(w, a):
    true = [jax.grad(loss)(w, a) for loss in LOSSES for _ in range(2)]
    return jnp.stack([jnp.vdot(one, of) / jnp.vdot(of, of) for (one, _), of in zip(steps(w, a), true)])

inputs = (jnp.sin(jnp.arange(128.0)).reshape(16, 8), jnp.sin(jnp.arange(512.0)).reshape(32, 16))
"""


LOSSES = list(range(4)) if THOROUGH else [1]


@pytest.mark.thorough
@pytest.mark.once
def test_functions_that_fix_their_types_are_compared(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"NUMBERS = {LOSSES}\n{NARROW}")
    true = _true_ratios(script)
    assert true == pytest.approx([1, 4] * len(LOSSES), rel=0.02)  # in halves

    found = {each.subject: _times(each) for each in _found(script, "steps")}
    wrong = {f"result[{number}][0] 4": 4.0 for number, ratio in enumerate(true) if ratio > 2}
    assert found == wrong


RATES = """
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh({shape}, ("data", "model"), axis_types=(AxisType.Auto,) * 2)

def step(reduce, w, a):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False)
    def mapped(w, a):
        value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(a @ w) ** 2))(w)
        return w - reduce(gradient), lax.pmean(value, "data")
    return mapped(w, a)

def steps(w, a):
    mean, total = (lambda g: lax.pmean(g, "data")), (lambda g: lax.psum(g, "data"))
    changes = [
        lambda g: 0.25 * total(g), lambda g: 0.25 * mean(g), lambda g: 0.25 * (total(g) / lax.axis_size("data")),
        lambda g: 0.1 * (total(g) * 0.25),
    ]
    return [step(changes[number], w, a) for number in {numbers}]

inputs = (jnp.sin(jnp.arange(128.0)).reshape(16, 8), jnp.sin(jnp.arange(512.0)).reshape(32, 16))
"""


@pytest.mark.once
@pytest.mark.parametrize("shape", sampled([((4, 2),), ((2, 4),)], 1))
def test_a_constant_that_may_be_a_mean_or_a_learning_rate_is_told(shape: tuple[int, int], tmp_path: Path) -> None:
    """What is right with a constant alone is wrong on another mesh, on which only a mean stays one."""
    script = tmp_path / "script.py"
    numbers = list(range(4)) if THOROUGH else [1, 3]
    script.write_text(RATES.format(shape=shape, numbers=numbers))
    found = {each.subject.partition("]")[0]: each for each in _found(script, "steps")}
    assert list(found) == [f"result[{place}" for place, number in enumerate(numbers) if number in (0, 3)]
    assert {each.severity for each in found.values()} == ({"info"} if shape[0] == 4 else {"error"})
    if shape[0] == 4:
        text = RATES.splitlines()
        lines = [text[(each.place.source.line or 0) - 1] for each in found.values()]
        words = {0: "0.25 * total(g)", 3: "total(g) * 0.25"}
        assert all(words[number] in line for number, line in zip({*numbers} & {*words}, lines, strict=True))
    else:
        assert [_times(each) for each in found.values()] == pytest.approx([2] * len(found), rel=1e-2)


@pytest.mark.once
def test_the_fix_makes_it_right(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"NUMBERS = {STEPS}\n{SCRIPT}")
    request = Request(f"{script}:step", probe="none", gradients=True)
    report = verified(inspect(last_capture(request)), request, inspect)
    (found,) = (each for each in report.findings if each.rule == "SS24")
    assert found.message == "the gradient result[0] is 4 times the true gradient (4 = |data|)"
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment.why
    (edit,) = found.proposal.edits
    assert (ast.unparse(ast.parse(edit.text)), edit.line) == ("lax.pmean", found.place.source.line)
