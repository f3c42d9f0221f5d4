"""A run on one device gives the same values, and tells which do not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shardscope.inspector.capture.protocol.values import Reference
from shardscope.inspector.capture.worker.probes.reference import apart, assemble, split
from shardscope.samples.catalogue import samples

from .conftest import Captured


def reference(captured: Captured, text: str, function: str = "fn") -> Reference:
    capture = captured(text, function, reference=True)
    assert capture.complete, capture.failure
    assert capture.reference is not None
    return capture.reference


@pytest.mark.parametrize("sample", ["pipeline:grad", "fsdp_tp:grad"])
def test_samples_give_the_same_on_one_device(sample: str, captured: Captured) -> None:
    name, _, function = sample.partition(":")
    path = next(each.path for each in samples() if each.name == name)
    found = reference(captured, path.read_text(), function)
    assert found.undefined is None
    assert found.compared > 10
    assert found.differs == ()


def test_the_first_value_that_differs(captured: Captured) -> None:
    found = reference(
        captured,
        """
        import itertools, jax, jax.numpy as jnp, numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
        calls = itertools.count()
        def fn(x):
            x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("x")))
            drawn = jax.pure_callback(lambda: np.float32(next(calls)), jax.ShapeDtypeStruct((), np.float32))
            y = jax.lax.with_sharding_constraint(x + drawn, NamedSharding(mesh, P("x")))
            return y * 2
        fn_inputs = (jnp.arange(8.0),)
        """,
    )
    first = found.differs[0]
    assert [(apart.when, apart.position) for apart in found.differs] == [("before", 0), ("after", 0), ("output", 0)]
    assert first.path == found.differs[1].path
    assert first.distance > 4096


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_difference(dtype: type) -> None:
    one = np.linspace(1, 100, 50).astype(dtype)
    assert apart(one, np.nextafter(one, one + 1)) is None
    other = one.copy()
    other[7] += dtype(100 * np.finfo(dtype).eps * 5000)
    distance = apart(one, other)
    assert distance is not None
    assert 4900 < distance < 5100
    assert apart(one, one[:10]) == float("inf")


def test_what_must_be_the_same() -> None:
    assert apart(np.array([1, 2]), np.array([1, 3])) == float("inf")
    assert apart(np.array([1.0, np.nan]), np.array([1.0, 2.0])) == float("inf")
    assert apart(np.array([np.inf]), np.array([-np.inf])) == float("inf")
    assert apart(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) is None


@pytest.mark.parametrize("spec", [(), ("x",), (None, "y"), (("y", "x"), None), ("x", "y"), (("x", "y"),)])
def test_blocks(spec: tuple[object, ...]) -> None:
    """Cut as `in_specs` say and put together as `out_specs` say: each block is the slice that its device has."""
    sizes = {"x": 2, "y": 3}
    value = np.arange(12 * 6).reshape(12, 6)
    blocks = np.asarray(split(jnp.asarray(value), spec, ("x", "y"), sizes))
    for x in range(2):
        for y in range(3):
            place = {"x": x, "y": y}
            wanted = value
            for dimension, entry in enumerate(spec):
                for name in entry if isinstance(entry, tuple) else (entry,):
                    if name is not None:
                        wanted = np.split(wanted, sizes[name], dimension)[place[name]]
            assert np.array_equal(blocks[x, y], wanted)
    assert np.array_equal(assemble(jnp.asarray(blocks), spec, ("x", "y")), value)


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
        reference=True,
        probe="all",
    )
    assert found.complete, found.failure
    assert found.reference is not None
    assert (found.reference.undefined, found.reference.differs) == (None, ())
    assert found.reference.compared > 2
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
