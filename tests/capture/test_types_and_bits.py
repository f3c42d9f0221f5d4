"""Types, bits and places of traced values, as JAX, NumPy and Python's own syntax have them, in this process."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardscope.inspector.capture.protocol.blocks import Block, by_receiver, received
from shardscope.inspector.capture.protocol.values import part_text
from shardscope.inspector.capture.worker.case import _array
from shardscope.inspector.capture.worker.inputs.arguments import MAX_INTEGER, concrete
from shardscope.inspector.capture.worker.probes import keeping
from shardscope.inspector.capture.worker.program import avals, structure

DTYPES = ("float32", "bfloat16", "float16", "float8_e5m2", "complex64", "int8", "uint16", "int32", "int4", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_digests_differ_where_bits_do(dtype: str) -> None:
    """Of an array, of each with one element changed, and with two exchanged: all differ, and are the same again."""
    numbers = np.arange(6).reshape(2, 3) % (2 if dtype == "bool" else 6)
    value, another = (
        each.astype(jnp.dtype(dtype)) for each in (numbers, 1 - numbers if dtype == "bool" else numbers + 1)
    )
    changed = [np.where(numbers * 0 + place, value, another) for place in (1 - np.eye(6, dtype=int)).reshape(6, 2, 3)]
    exchanged = value.reshape(-1)[np.r_[1, 0, 2:6]].reshape(2, 3)
    found = {bytes(np.asarray(keeping.digest(jnp.asarray(each)))) for each in (value, exchanged, *changed)}
    assert len(found) == 8
    assert bytes(np.asarray(keeping.digest(jnp.asarray(value)))) in found
    assert np.asarray(keeping.digest(jnp.asarray(value))).dtype == np.uint32


def test_zeros_and_nans_have_bits() -> None:
    one, other = (bytes(np.asarray(keeping.digest(jnp.full(3, zero)))) for zero in (0.0, -0.0))
    assert one != other
    nans = [np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001)]
    assert len({bytes(keeping.bits(nan)) for nan in nans}) == 2
    assert keeping.bits(np.zeros((2, 3), np.float64)).shape == (2, 3, 8)


def test_small_values_are_compared_as_they_are() -> None:
    value = jnp.arange(keeping.MAX_MOVED // 16, dtype=jnp.float32)
    assert np.array_equal(np.asarray(keeping.comparable(value, 4)), np.asarray(value))
    assert keeping.comparable(value, 5).shape == (2,)
    for number in (3, 2.5, True, np.float32(4)):
        assert keeping.comparable(number, 1) == number
        assert keeping.plain(number).dtype == jnp.asarray(number).dtype
    key = jax.random.key(3)
    assert np.array_equal(np.asarray(keeping.comparable(key, 1)), np.asarray(jax.random.key_data(key)))


def test_types_that_have_bits() -> None:
    new_ref = getattr(jax, "new_ref", None) or jax.array_ref
    (ref,) = (atom.aval for each in jax.make_jaxpr(lambda x: new_ref(x)[...])(1.0).eqns[:1] for atom in each.outvars)
    for value in (1, 2.0, True, np.ones(3, np.int8), jax.random.key(0), jnp.ones((2, 2), jnp.bfloat16)):
        assert keeping.has_bits(jax.typeof(value))
    for aval in (jax._src.core.abstract_token, ref, object(), SimpleNamespace(dtype=np.float32)):
        assert not keeping.has_bits(aval)
    assert avals.is_ref(ref)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (PartitionSpec(), "P()"),
        (PartitionSpec("x", None), "P('x', None)"),
        (PartitionSpec(("x", "y"), "z"), "P(('x', 'y'), 'z')"),
        (PartitionSpec(PartitionSpec.UNCONSTRAINED, "x"), "P(P.UNCONSTRAINED, 'x')"),
        (PartitionSpec(None, unreduced={"y", "x"}), "P(None, unreduced={'x', 'y'})"),
    ],
)
def test_specs_as_python_spells_them(spec: PartitionSpec, text: str) -> None:
    assert avals.spec_text(spec) == text
    names = {"P": PartitionSpec}
    assert eval(text, names) == spec
    kind = AxisType.Explicit if spec.unreduced else AxisType.Auto
    mesh = AbstractMesh((2, 2, 2), ("x", "y", "z"), axis_types=(kind,) * 3)
    assert avals.spec_text(NamedSharding(mesh, spec)) == text
    assert avals.spec_text(jax.sharding.SingleDeviceSharding(jax.devices()[0])) is None


def test_places_of_equations_are_those_of_the_syntax() -> None:
    def fn(x: jax.Array) -> jax.Array:
        first = jnp.sin(
            x  # on a line of its own
        )
        return jax.lax.mul(first, x) + jnp.cumsum(jnp.cos(x), axis=0)

    with open(__file__) as file:
        tree = ast.parse(file.read())
    calls = {
        ast.unparse(node).partition("(")[0].rpartition(".")[2]: (
            node.lineno,
            node.end_lineno,
            node.col_offset,
            node.end_col_offset,
        )
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name == "fn"
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    }
    stacks = structure.Stacks()
    found = {}
    for equation in jax.make_jaxpr(fn)(jnp.ones(3)).eqns:
        innermost, *_ = stacks.of(equation, [])
        frame = stacks.frames[innermost]
        assert frame[0] == __file__
        assert frame[1].endswith("fn")
        found[equation.primitive.name] = frame[2:]
        place = structure.line_of(equation)
        assert place is not None
        assert (place.file, place.line) == (__file__, frame[2])
        assert structure.place_of(equation) == f"{__file__}:{frame[2]}"
    for name in ("sin", "mul", "cos"):
        assert found[name] == calls[name]


Choose = Callable[[int], Block]


def elements(block: Block) -> set[tuple[int, ...]]:
    return set(product(*(range(*ends) for ends in block)))


def by_rows(parts: int) -> Choose:
    return lambda device: ((device % parts * (8 // parts), (device % parts + 1) * (8 // parts)), (0, 4))


def by_columns(parts: int) -> Choose:
    return lambda device: ((0, 8), (device % parts * (4 // parts), (device % parts + 1) * (4 // parts)))


LAYOUTS = {
    "rows": by_rows(4),
    "pairs": by_rows(2),
    "columns": by_columns(4),
    "halves": by_columns(2),
    "one": by_rows(1),
}


@pytest.mark.parametrize("after", LAYOUTS)
@pytest.mark.parametrize("before", [*LAYOUTS, None])
def test_what_devices_receive_is_what_they_lack(before: str | None, after: str) -> None:
    """By the elements of each block, one by one."""
    wanted = {device: LAYOUTS[after](device) for device in range(4)}
    held = None if before is None else {device: LAYOUTS[before](device) for device in range(4)}
    pairs = received(held, wanted, 2)
    lacks = {device: elements(block) - (elements(held[device]) if held else set()) for device, block in wanted.items()}
    assert by_receiver(pairs) == {device: 2 * len(lacking) for device, lacking in lacks.items() if lacking}
    for sender, device in pairs:
        assert sender != device
        assert (sender is None) == (held is None)
        if held is not None and sender is not None:
            assert elements(held[sender]) & elements(wanted[device])


def test_too_many_blocks_are_not_compared() -> None:
    held = {device: ((device, device + 1),) for device in range(257)}
    with pytest.raises(ValueError, match="257 blocks and those of 256 devices"):
        received(held, dict(list(held.items())[:256]), 1)
    assert received(dict(list(held.items())[:256]), dict(list(held.items())[:256]), 1) == {}


def test_parts_are_those_of_numpy() -> None:
    """Each part that a text names is the block itself, and one of a whole dimension has a colon alone."""
    array = np.arange(24).reshape(4, 6)
    for block in product(
        *([slice(None), slice(0, size), slice(1, size), slice(0, 2), slice(1, None)] for size in (4, 6))
    ):
        text = part_text(block, array.shape)
        assert np.array_equal(eval(f"array[{text}]", {"array": array}), array[block])
        assert [each == ":" for each in text.split(", ")] == [
            len(range(size)[each]) == size for each, size in zip(block, (4, 6), strict=True)
        ]


@pytest.mark.parametrize("dtype", [*DTYPES, "float64", "uint2", "complex128", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (64, 9)])
def test_values_for_types(dtype: str, shape: tuple[int, ...]) -> None:
    """Of the type, finite, the same for the same seed and place, and others for others."""
    leaf = jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))
    value = concrete(leaf, 1, 2)
    assert (value.shape, value.dtype) == (shape, jnp.dtype(dtype))
    assert np.array_equal(value, concrete(leaf, 1, 2))
    wide = value.astype(np.complex128)
    assert np.isfinite(wide).all()
    if shape:
        assert not np.array_equal(value, concrete(leaf, 1, 3))
        assert not np.array_equal(value, concrete(leaf, 2, 2))
        if jnp.issubdtype(dtype, jnp.integer) or dtype == "bool":
            largest = 1 if dtype == "bool" else min(MAX_INTEGER - 1, int(jnp.iinfo(dtype).max))
            assert set(np.unique(wide.real)) == set(range(largest + 1))
        else:
            assert abs(wide.mean()) < 0.25
            assert 0.8 < wide.real.std() < 1.2
            assert (0.8 < wide.imag.std() < 1.2) == jnp.issubdtype(dtype, jnp.complexfloating)
            gentle = concrete(leaf, 1, 2, gentle=True).astype(np.complex128).real
            assert gentle.min() >= 0
            assert np.allclose(gentle, abs(wide.real) / 8, rtol=0.1, atol=0.01)


def test_values_that_are_given_and_keys() -> None:
    given = np.arange(3)
    assert concrete(given, 0, 0) is given
    for implementation in ("threefry2x32", "rbg"):
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0, impl=implementation), (2, 3)))  # noqa: B023
        found = concrete(keys, 1, 2)
        assert (found.shape, found.dtype) == ((2, 3), keys.dtype)
        assert len({bytes(np.asarray(each)) for each in jax.random.key_data(found).reshape(6, -1)}) == 6
    one = jax.eval_shape(lambda: jax.random.key(0))
    assert concrete(one, 1, 2).shape == ()


@pytest.mark.parametrize("dtype", [*DTYPES, "float64", "uint2", "complex128", "float8_e4m3fn"])
def test_arguments_of_a_case_have_types_of_numpy(dtype: str) -> None:
    """The same numbers, in a type that a file of NumPy's holds."""
    value = np.arange(4).reshape(2, 2).astype(jnp.dtype(dtype))
    found = _array(value)
    assert np.array_equal(found, value.astype(np.complex128))
    assert found.dtype.kind in "biufc"
    if value.dtype.kind in "biufc":
        assert found.dtype == jnp.asarray(value).dtype
    else:
        assert found.dtype == (np.float32 if "float" in dtype else np.uint8 if "uint" in dtype else np.int8)
    data = _array(jax.random.key(3))
    assert np.array_equal(data, jax.random.key_data(jax.random.key(3)))
