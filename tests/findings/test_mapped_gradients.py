"""Gradients taken inside of a shard_map, against the gradient that one device computes of the loss that is returned."""

from __future__ import annotations

import ast
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.values.gradients import wrong_gradients

from tests.findings.trying import verified

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

STEPS = [
    means, sums, sum_for_mean, mean_for_sum, doubled, mean_by_hand, mean_in_the_loss, microbatches, microbatches_summed,
    scattered, typed_loss, typed_mean_of_what_is_summed, of_blocks, of_blocks_not_divided,
    of_columns, of_columns_by_psum,
]

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


def _true_ratios(script: Path) -> list[float]:
    """The numbers that a script's `ratios` gives, by JAX on one device."""
    capture = last_capture(Request(f"{script}:ratios", probe="none"))
    assert capture.execution is not None, capture.failure
    (output,) = capture.execution.outputs
    assert output.values is not None
    return [float(each) for each in output.values.strip("[]").replace(",", " ").split()]


def test_what_differs_from_the_gradient_of_one_device_is_found(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    true = _true_ratios(script)
    assert true == pytest.approx([1, 1, 4, 1 / 4, 8, 1, 1, 1, 4, 1, 1, 4, 1, 4, 1, 2], rel=1e-3)

    gradients = last_capture(Request(f"{script}:steps", live=False, gradients=True)).gradients
    assert gradients is not None
    assert (gradients.undefined, gradients.left_out, len(gradients.checked)) == (None, 0, len(true))
    wrong = {id(each.derivative): each.factor for each in wrong_gradients(gradients)}
    assert [wrong.get(id(each), 1.0) for each in gradients.checked] == pytest.approx(true, rel=1e-3)
    lines = SCRIPT.splitlines()
    for each in gradients.checked:
        assert each.sums is not None
        assert all("data" in lines[place.line - 1] for place in each.sums)


@pytest.mark.parametrize("context", ["mesh", "jax.set_mesh(mesh)"])
def test_with_a_mesh_around_the_call_the_same_is_found(context: str, tmp_path: Path) -> None:
    """The literals of the body, of the difference in the derivative of tanh, have the types of that mesh."""
    script = tmp_path / "script.py"
    script.write_text(f"{SCRIPT}\nif __name__ == '__main__':\n    with {context}:\n        sum_for_mean(*inputs)\n")
    capture = last_capture(Request(f"{script}:sum_for_mean", live=False, gradients=True))
    assert capture.gradients is not None
    assert capture.gradients.undefined is None
    assert [each.factor for each in wrong_gradients(capture.gradients)] == [pytest.approx(4)]


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

LOSSES = [asserted, in_halves, embedded, recomputed]

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


def test_functions_that_fix_their_types_are_compared_in_float64(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(NARROW)
    true = _true_ratios(script)
    assert true == pytest.approx([1, 4] * 4, rel=0.02)  # in halves

    gradients = last_capture(Request(f"{script}:steps", live=False, gradients=True)).gradients
    assert gradients is not None
    assert (gradients.undefined, gradients.left_out) == (None, 0)
    ratios = [each.slope / each.difference for each in gradients.checked]
    assert ratios == pytest.approx([1, 4] * 4, rel=1e-4)


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
    return [step(change, w, a) for change in changes]

inputs = (jnp.sin(jnp.arange(128.0)).reshape(16, 8), jnp.sin(jnp.arange(512.0)).reshape(32, 16))
"""


def test_a_constant_that_may_be_a_mean_or_a_learning_rate_is_told(tmp_path: Path) -> None:
    """What is right with a constant alone is wrong on another mesh, on which only a mean stays one."""
    factors, wrong = {}, {}
    for shape in ((4, 2), (2, 4)):
        script = tmp_path / "script.py"
        script.write_text(RATES.format(shape=shape))
        capture = last_capture(Request(f"{script}:steps", live=False, gradients=True))
        assert capture.gradients is not None
        factors[shape] = [each.factor for each in capture.gradients.checked]
        found = {id(each.derivative): each.factor for each in wrong_gradients(capture.gradients)}
        wrong[shape] = [found.get(id(each)) for each in capture.gradients.checked]
        if shape == (4, 2):
            notes = [each for each in inspect(capture).findings if each.rule == "SS24"]
            lines = [each.place.source.line for each in notes]
            assert {each.severity for each in notes} == {"info"}
            assert ["0.25 * total(g)" in RATES.splitlines()[line - 1] for line in lines if line] == [True, False]
    assert (factors[4, 2], wrong[4, 2]) == ([0.25, None, None, 0.25], [None] * 4)
    assert factors[2, 4] == [None] * 4
    assert wrong[2, 4] == [pytest.approx(2), None, None, pytest.approx(2)]


def test_the_fix_makes_it_right(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    request = Request(f"{script}:step", probe="none", gradients=True)
    report = verified(inspect(last_capture(request)), request, inspect)
    (found,) = (each for each in report.findings if each.rule == "SS24")
    assert found.message == "the gradient for w is 4 times the true gradient (4 = |data|)"
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment.why
    (edit,) = found.proposal.edits
    assert (ast.unparse(ast.parse(edit.text)), edit.line) == ("lax.pmean", found.place.source.line)
