"""Values compared with those of a run on one device, and NaNs followed to where they begin."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from shardscope.inspector.capture.protocol.values import Reference
from shardscope.inspector.capture.worker.probes.summing import summary_of
from shardscope.samples.catalogue import samples

from tests.sweeps import sampled

from .conftest import Captured

HEAD = """
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
mapped = partial(jax.shard_map, mesh=mesh)
x = jax.random.normal(jax.random.key(0), (8, 8))
w = jax.random.normal(jax.random.key(1), (8,))
vary = lambda w: lax.pcast(w, "x", to="varying") if hasattr(lax, "pcast") else lax.pvary(w, "x")
"""


def reference(captured: Captured, text: str, function: str = "fn") -> Reference:
    capture = captured(text, function, reference=True)
    assert capture.complete, capture.failure
    assert capture.reference is not None
    assert capture.summaries == ()
    return capture.reference


@pytest.mark.parametrize("sample", sampled(["data_parallel:grad", "megatron_mlp:grad", "fsdp_tp:grad"], 1))
def test_samples_give_the_same_on_one_device(sample: str, captured: Captured) -> None:
    name, _, function = sample.partition(":")
    path = next(each.path for each in samples() if each.name == name)
    found = reference(captured, path.read_text(), function)
    assert found.undefined is None
    assert found.compared > 10
    assert found.differs == ()


WRONG = {
    "means of masked means": (
        """
def fn(w, x, mask):
    def body(w, x, mask):
        local = jnp.sum(jnp.tanh(x @ w) * mask) / jnp.maximum(jnp.sum(mask), 1)
        return lax.pmean(local, "x")  # first
    return mapped(body, in_specs=(P(), P("x"), P("x")), out_specs=P())(w, x, mask)
fn_inputs = (w, x, (jnp.arange(8) % 3 > 0).astype(jnp.float32))
""",
        None,
    ),
    "the same random numbers in every shard": (
        """
def fn(key, x):
    def body(key, x):
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0)
    return mapped(body, in_specs=(P(), P("x")), out_specs=P("x"))(key, x)  # first
fn_inputs = (jax.random.key(2), x)
""",
        None,
    ),
    "an update per shard": (
        """
def fn(w, x):
    def body(w, x):
        w = vary(w)
        for _ in range(2):
            w = w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return lax.pmean(w, "x")  # first
    return mapped(body, in_specs=(P(), P("x")), out_specs=P())(w, x)
fn_inputs = (w, x)
""",
        None,
    ),
    "a sum that is taken again": (
        """
def fn(x):
    total = lambda x: lax.psum(lax.psum(jnp.sum(x), "x") + 0 * x[0, 0], "x")  # first
    return jnp.sin(mapped(total, in_specs=P("x"), out_specs=P(), check_vma=False)(x)), x * 2
fn_inputs = (x,)
""",
        4.0,
    ),
}


@pytest.mark.parametrize("name", sampled(WRONG, 2, 1))
def test_the_first_value_that_differs(name: str, captured: Captured) -> None:
    """The line is the one that is marked; programs of which a run on one device once was said to be equal."""
    text, factor = WRONG[name]
    found = reference(captured, HEAD + text)
    assert found.undefined is None
    first = found.differs[0]
    (marked,) = [number for number, line in enumerate((HEAD + text).splitlines(), 1) if line.endswith("# first")]
    assert first.line is not None
    assert first.line.line == marked
    assert first.factor == (None if factor is None else pytest.approx(factor, rel=1e-3))
    assert found.differs[-1].when == "output"


RIGHT = """
def fn(w, x, mask):
    def body(w, x, mask):
        total, count = lax.psum((jnp.sum(jnp.tanh(x @ w) * mask), jnp.sum(mask)), "x")
        return total / count
    def loss(w):
        return mapped(body, in_specs=(P(), P("x"), P("x")), out_specs=P())(w, x, mask)
    return lax.scan(lambda w, _: (w - 0.1 * jax.grad(loss)(w), loss(w)), w, None, length=3)
fn_inputs = (w, x, (jnp.arange(8) % 3 > 0).astype(jnp.float32))
"""


@pytest.mark.once
def test_a_mean_over_all_devices_is_that_of_one(captured: Captured) -> None:
    found = reference(captured, HEAD + RIGHT)
    assert (found.undefined, found.differs) == (None, ())


@pytest.mark.parametrize(
    ("text", "reason"),
    sampled([
        ("fn = mapped(lambda x: lax.ppermute(x, 'x', [(0, 1)]), in_specs=P('x'), out_specs=P('x'))", "does not run"),
        ("fn = lambda x: x * 2\nx = jnp.zeros((2 * mesh.size, 8))", "other arguments"),
        ("def fn(x):\n    return [x] * mesh.size", "other results"),
    ], 1, 1),
)  # fmt: skip
def test_what_cannot_be_run_on_one_device_says_so(text: str, reason: str, captured: Captured) -> None:
    found = reference(captured, f"{HEAD}{text}\nfn_inputs = (x,)\n")
    assert found.undefined is not None
    assert reason in found.undefined


@pytest.mark.once
def test_what_rounding_explains(captured: Captured) -> None:
    """A chaotic map of sums in another order differs by rounding that is amplified; what is added to it does not."""
    found = reference(
        captured,
        HEAD
        + """
def fn(x, w):
    product = lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "x"))) @ w
    return lax.scan(lambda y, _: (3.99 * y * (1 - y), None), jax.nn.sigmoid(product / 16), None, length=60)[0]
fn_inputs = (jax.random.normal(jax.random.key(0), (16, 256)), jax.random.normal(jax.random.key(1), (256, 64)))
""",
    )
    assert (found.undefined, found.differs) == (None, ())
    assert found.amplified == 1


@pytest.mark.parametrize("shape", [(), (5,), (4, 6), (2, 3, 4)])
def test_summaries_are_products(shape: tuple[int, ...]) -> None:
    """Linear in the value, and those of its reverse and of its transpose are others."""
    value = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    norm, one, other, nans = np.asarray(summary_of(jax.numpy.asarray(value)))
    assert norm == pytest.approx(float(np.linalg.norm(value)), rel=1e-5)
    assert nans == 0
    assert np.allclose(np.asarray(summary_of(jax.numpy.asarray(3 * value)))[1:3], [3 * one, 3 * other], rtol=1e-4)
    if value.size > 1:
        backwards = np.asarray(summary_of(jax.numpy.asarray(value.reshape(-1)[::-1].reshape(shape))))
        assert backwards[0] == pytest.approx(float(norm), rel=1e-5)
        assert abs(backwards[1] - one) > 1e-3
    with_nan = np.where(value == value.max(), np.nan, value)
    assert np.asarray(summary_of(jax.numpy.asarray(with_nan)))[3] == 1


NAN = """
def fn(x):
    def step(total, row):
        total = total - jnp.abs(row).sum()
        return total, jnp.log(total)  # begins
    masked = jnp.where(x > 1, jnp.sqrt(x - 1), 0)
    logs = mapped(lambda x: lax.scan(step, 12.0 + 0 * x[0, 0], x)[1], in_specs=P("x"), out_specs=P("x"))
    return masked.sum(), logs(x)
fn_inputs = (x,)
"""


@pytest.mark.once
def test_nan_is_followed_to_its_operation(captured: Captured) -> None:
    """Through a shard_map and a loop, past NaNs that do not reach a result; NumPy tells in which iteration."""
    capture = captured(HEAD + NAN)
    rows = np.abs(np.asarray(jax.random.normal(jax.random.key(0), (8, 8)))).sum(1).reshape(4, 2).cumsum(1)
    first = int(np.argwhere(rows > 12)[:, 1].min())
    (marked,) = [number for number, line in enumerate((HEAD + NAN).splitlines(), 1) if line.endswith("# begins")]
    (said,) = [each for each in capture.messages if each.text.startswith("NaN begins")]
    assert said.text.startswith(f"NaN begins in log (script.py:{marked}), in iteration {first} of its loop")
    assert said.location is not None
    assert said.location.endswith(f"script.py:{marked}")


def test_finite_results_have_no_origin_of_nan(captured: Captured) -> None:
    capture = captured(f"{HEAD}fn = lambda x: jnp.where(x > 1, jnp.sqrt(x - 1), 0)\nfn_inputs = (x,)\n")
    assert not [each for each in capture.messages if "NaN" in each.text]


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 takes no such product")
def test_partial_sums_as_arguments_results_and_on_the_way(captured: Captured) -> None:
    """Compared with NumPy: each device has a summand, and together they are the value."""
    found = captured(
        """
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Explicit,) * 3)
        jax.set_mesh(mesh)
        def fn(x, y, partial):
            product = jnp.einsum("bi,bo->io", x, y, out_sharding=P(None, "c", unreduced={"a", "b"}))
            return product, jax.sharding.reshard(product + partial, P("a", None))
        def on(*spec):
            return jax.device_put(np.arange(128, dtype=np.float32).reshape(16, 8), NamedSharding(mesh, P(*spec)))
        summands = NamedSharding(mesh, P(None, "c", unreduced={"a", "b"}))
        partial = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=summands)
        fn_inputs = (on(("a", "b"), None), on(("a", "b"), "c"), partial)
        """,
        probe="all",
    )
    assert found.complete, found.failure
    x = np.arange(128, dtype=np.float32).reshape(16, 8)
    assert found.execution is not None
    first, _ = found.execution.outputs
    product = x.T @ x
    assert (first.minimum, first.mean, first.maximum) == (product.min(), product.mean(), product.max())
    (output,) = (probe for probe in found.probes if probe.when == "output" and probe.position == 0)
    held = np.frombuffer(output.elements, np.float32).reshape(len(output.shards), 8, 4)
    left = sum(data for data, shard in zip(held, output.shards, strict=True) if shard.coordinates[2] == 0)
    assert np.array_equal(left, product[:, :4])
    assert len({shard.digest for shard in output.shards}) == 8
