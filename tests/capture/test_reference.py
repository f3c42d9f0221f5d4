"""A run on one device gives the same values, and tells which do not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shardscope.inspector.capture.protocol.values import Reference
from shardscope.inspector.capture.worker.probes.against import Bound, tolerance
from shardscope.inspector.capture.worker.probes.reference import assemble, split
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
    assert first.distance > 1


@pytest.mark.parametrize("context", ["mesh", "jax.set_mesh(mesh)"])
def test_a_mesh_around_the_call_is_none_on_one_device(context: str, captured: Captured) -> None:
    found = reference(
        captured,
        f"""
        import jax, jax.numpy as jnp, numpy as np
        from jax import lax
        from jax.sharding import Mesh, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
        def body(x):
            return lax.psum(jax.grad(lambda x: (jnp.tanh(x) ** 2).mean())(x), "x")  # with literals of this mesh
        def fn(x):
            return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(x)
        fn_inputs = (jnp.arange(8.0),)
        if __name__ == "__main__":
            with {context}:
                fn(*fn_inputs)
        """,
    )
    assert found.undefined is None
    assert found.compared
    assert found.differs == ()


def test_collectives_over_several_axes(captured: Captured) -> None:
    """JAX maps gathers and scatters over one axis only; the sharded run is what they are compared with."""
    found = reference(
        captured,
        """
        import jax, jax.numpy as jnp, numpy as np
        from jax import lax
        from jax.sharding import Mesh, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
        def body(v):
            whole = lax.all_gather(v, ("y", "x"), tiled=True)
            stacked = lax.all_gather(v, ("x", "y"), axis=1)
            block = lax.psum_scatter(whole * jnp.sin(v[0]), ("y", "x"), tiled=True)
            row = lax.psum_scatter(whole.reshape(4, 2) * jnp.cos(v[0]), ("x", "y"))
            moved = lax.ppermute(v, ("x", "y"), [(0, 3), (3, 0), (1, 2)])
            return jnp.sin(whole), jnp.sin(stacked), block * 2, row * 2, moved * 2
        def fn(x):
            over = P(("x", "y"))
            return jax.shard_map(body, mesh=mesh, in_specs=over, out_specs=over, check_vma=False)(x)
        fn_inputs = (jnp.arange(8.0),)
        """,
    )
    assert found.undefined is None
    assert found.compared >= 10
    assert found.differs == ()


def apart(one: np.ndarray, other: np.ndarray, **options: Any) -> float | None:
    """The distance beyond rounding."""
    epsilon = float(jnp.finfo(other.dtype).eps) if jnp.issubdtype(other.dtype, jnp.inexact) else 0.0
    return Bound.of(other, epsilon, **options).beyond(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.bfloat16, jnp.float8_e5m2])
def test_rounding_is_no_difference(dtype: Any) -> None:
    """Two orders of one sum, and a number that is 10 times as far off as the largest element may be."""
    one = np.linspace(1, 100, 50).astype(dtype)
    assert apart(one, one * np.array(1 + jnp.finfo(dtype).eps, dtype)) is None
    summands = np.random.default_rng(0).normal(size=(1000, 8)).astype(dtype)
    if jnp.finfo(dtype).eps < 0.01:
        assert apart(summands.astype(float).sum(0).astype(dtype), sum(np.split(summands, 4)).sum(0, dtype)) is None
    wide = np.array(one, np.float64)
    wide[7] += 100 * 10 * tolerance(float(jnp.finfo(dtype).eps))
    distance = apart(wide, one)
    assert distance is not None
    assert 9.5 < distance < 10.5
    assert apart(one, one[:10]) == float("inf")


def test_rounding_that_a_program_amplifies() -> None:
    """As much as another run with changed arguments differs, unless it is another one with the same ones."""
    one, other = np.array([1.0, 2.0], np.float32), np.array([1.5, 2.0], np.float32)
    assert apart(one, other, same=other, changed=other + np.float32(0.1)) is None
    assert apart(one, other, same=other, changed=other) is not None
    assert apart(one, other, same=other + 1, changed=other + np.float32(0.1)) is not None
    flags = np.array([True, False, True])
    assert apart(flags, ~flags, same=~flags, changed=np.array([False, True, True])) is None
    assert apart(flags, ~flags, same=~flags, changed=~flags) == float("inf")


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


def test_differences_in_the_order_in_which_they_arise_and_on_the_devices_that_have_them(captured: Captured) -> None:
    """A number that only the sharded run draws enters in iteration 1; NumPy says which devices have other copies."""
    captures = captured(
        """
        import itertools, jax, jax.numpy as jnp, numpy as np
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
        calls = itertools.count()
        def con(x):
            return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("y")))
        def body(x, step):
            x = con(x)
            drawn = jax.pure_callback(lambda: np.float32(next(calls)), jax.ShapeDtypeStruct((), np.float32))
            return con(x + jnp.where(step < 1, 0, drawn)), None
        def fn(x):
            local = jax.shard_map(lambda x: x.sum(0), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
            return local(x), jax.lax.scan(body, x[:, 0], jnp.arange(3))[0]
        fn_inputs = (jnp.arange(64.0).reshape(8, 8),)
        """,
        reference=True,
    )
    found = captures.reference
    assert found is not None
    assert (found.undefined, found.left_out) == (None, 0)
    inside = [each for each in found.differs if each.path]
    assert [(apart.iteration, apart.when) for apart in inside] == [
        ((1,), "before"),
        ((1,), "after"),
        *[((2,), when) for when in ("before", "after") * 2],
    ]
    assert {apart.path[-1] for apart in inside[:2]} == {inside[-1].path[-1]}
    sums = np.arange(64.0).reshape(4, 2, 8).sum(1)
    others = {(x, y) for x in range(4) for y in range(2) if not np.array_equal(sums[x], sums[0])}
    copies = [apart.coordinates for apart in found.differs if not apart.path and apart.position == 0]
    assert set(copies) == others
    assert len(copies) == len(others)
    # two constraints, before and after, in three iterations; and what is returned
    assert found.compared == 2 * 2 * 3 + 2


def test_what_rounding_explains(captured: Captured) -> None:
    """Products of bfloat16 seen as float32, and a chaotic map, differ by rounding; copies of a sum that is not taken do
    not, by NumPy."""
    capture = captured(
        """
        import jax, jax.numpy as jnp
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((2, 4), ("dp", "tp"), axis_types=(AxisType.Auto,) * 2)
        def con(x, *spec):
            return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))
        def fn(x, w):
            product = con(x, "dp", "tp") @ con(w, "tp", None)
            small = con(x, "dp", "tp").astype(jnp.bfloat16) @ con(w, "tp", None).astype(jnp.bfloat16)
            body = lambda y, _: (con(3.99 * y * (1 - y), "dp", None), None)
            chaotic = jax.lax.scan(body, con(jax.nn.sigmoid(product / 16), "dp", None), None, length=60)[0]
            local = lambda x: x.astype(jnp.bfloat16).sum(0)
            wrong = jax.shard_map(local, mesh=mesh, in_specs=P("dp"), out_specs=P(), check_vma=False)(x)
            return con(small.astype(jnp.float32) * 1.5, "dp", None), chaotic, wrong
        def inputs():
            key = jax.random.key(0)
            return jax.random.normal(key, (16, 256)), jax.random.normal(key, (256, 64)) / 4
        """,
        reference=True,
    )
    found = capture.reference
    assert found is not None
    assert found.undefined is None
    assert {(apart.path, apart.position) for apart in found.differs} == {((), 2)}
    assert {apart.coordinates[0] for apart in found.differs} == {1}
    assert found.amplified >= 2
