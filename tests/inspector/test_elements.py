"""Elements are read from bits as numpy reads them, and crafted ones are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from shardscope.inspector.capture.protocol.values import Probe, Shard
from shardscope.inspector.report.elements import (
    array_lines,
    coordinates_text,
    decode,
    element_text,
    rows,
    shard_bits,
    shard_elements,
)

SMALL = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e4m3")
WIDE = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(jnp, name, None) or name)


@pytest.mark.parametrize("name", [*SMALL, *WIDE, "bfloat16", "complex64"])
def test_as_numpy_reads_them(name: str) -> None:
    if not hasattr(jnp, name) and name.startswith("float8"):
        pytest.skip("this JAX has no such type")
    dtype = dtype_of(name)
    random = np.random.default_rng(0).integers(0, 256, 256 * dtype.itemsize).astype(np.uint8)
    data = bytes(range(256)) if dtype.itemsize == 1 and name != "bool" else random.tobytes()
    if name == "bool":
        data = bytes(n % 2 for n in range(256))
    wanted = np.frombuffer(data, dtype)
    found = decode(name, data, len(wanted))
    assert found is not None
    exact = wanted.astype(np.complex128 if name.startswith("complex") else object if "int" in name else np.float64)
    for one, other in zip(found, exact.tolist(), strict=True):
        both_nan = one != one and other != other
        assert both_nan or (one == other and str(one)[0] == str(other)[0]) or name in ("bool", "complex64")


@pytest.mark.parametrize(
    ("dtype", "data", "count"),
    [
        ("float32", b"abc", 1),
        ("float32", b"", 10**9),
        ("int8", b"a", -1),
        ("nothing", b"a", 1),
        ("float8_e9m9", b"a", 1),
    ],
)
def test_what_does_not_fit(dtype: str, data: bytes, count: int) -> None:
    assert decode(dtype, data, count) is None


def probe(shape: tuple[int, ...], extent: tuple[int, ...], elements: bytes, dtype: str = "int8") -> Probe:
    start = (0,) * len(shape)
    shards = (Shard(0, (0,), "aa", "", -5.0, 1.0, 7.0, 2),)
    return Probe(("1.0",), "after", 0, "t", dtype, shape, ("x",), shards, (), (), start, extent, elements)


def test_arrays_as_numpy_writes_them() -> None:
    values = np.arange(-3, 9, dtype=np.int8).reshape(3, 4)
    lines = array_lines(probe((3, 4), (3, 4), values.tobytes()), 0, 9, 9)
    assert "\n".join(lines) == str(values)
    assert array_lines(probe((4,), (4,), values[0].tobytes()), 0, 9, 9) == [str(values[0])]
    assert array_lines(probe((1, 4), (1, 4), values[0].tobytes()), 0, 9, 9) == [str(values[:1])]
    assert array_lines(probe((), (), b"\x07"), 0, 4, 4) == ["7"]
    for shape in ((0,), (2, 0), (0, 3)):
        assert array_lines(probe(shape, shape, b""), 0, 4, 4) == [str(np.zeros(shape, np.int8))]


def test_large_arrays_are_cut() -> None:
    values = np.arange(60, dtype=np.int8).reshape(6, 10)
    lines = array_lines(probe((600, 10), (6, 10), values.tobytes()), 0, 2, 3, 1, 2)
    assert lines == ["[[12 13 14 …]", " [22 23 24 …] …", "[600,10]: min -5. mean 1. max 7., 2 not finite"]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (3, 4), (2, 0), (2, 3, 2)])
@pytest.mark.parametrize("window", [(9, 9, 0, 0), (2, 2, 0, 0), (1, 3, 1, 1), (2, 9, 2, 3), (9, 1, 0, 3)])
def test_windows_are_slices(shape: tuple[int, ...], window: tuple[int, int, int, int]) -> None:
    """All dimensions but the last are counted through as rows."""
    height, width, top, left = window
    values = np.arange(math.prod(shape), dtype=np.int8).reshape(shape)
    flat = values.reshape(math.prod(shape[:-1]), shape[-1] if shape else 1)
    part = flat[top : top + height, left : left + width]
    found = rows(probe(shape, shape, values.tobytes()), 0, height, width, top, left)
    assert found is not None
    assert [row for row in found if row] == [tuple(map(str, row)) for row in part.tolist() if row]
    if part.size:
        shown = "\n".join(array_lines(probe(shape, shape, values.tobytes()), 0, height, width, top, left))
        assert ("min -5. mean 1. max 7., 2 not finite" in shown) == (part.size < values.size)
        assert ("…" in shown) == (part.size < values.size)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_narrow_integers(dtype: str) -> None:
    """One in a byte, of which the upper bits mean nothing."""
    if not hasattr(jnp, dtype):
        pytest.skip("this JAX has no such type")
    bits = int(dtype[-1])
    first = -(1 << (bits - 1)) if dtype.startswith("i") else 0
    numbers = np.arange(first, first + (1 << bits))
    data = bytes(int(n) & 0xFF for n in numbers.astype(dtype_of(dtype)).view(np.int8))
    found = decode(dtype, data, len(numbers))
    assert found == tuple(numbers.tolist())
    assert decode(dtype, bytes((byte + (1 << bits)) & 0xFF for byte in data), len(numbers)) == found
    assert decode(dtype, data, len(numbers) + 1) is None


def test_shards_of_a_probe() -> None:
    values = np.arange(12, dtype=np.int16).reshape(3, 2, 2)
    each = tuple(Shard(number, (number,), "aa", "", 0.0, 0.0, 0.0, 0) for number in range(3))
    one = probe((2, 2), (2, 2), values.tobytes(), "int16")
    three = replace(one, shards=each)
    for number in range(3):
        assert shard_elements(three, number) == tuple(values[number].ravel().tolist())
        assert shard_bits(three, number) == values[number].tobytes()
    for number in (-1, 3):
        assert shard_elements(three, number) is None
    assert shard_elements(replace(three, shards=()), 0) is None
    assert shard_elements(replace(three, extent=(2, 0), elements=b""), 2) == ()
    assert shard_elements(replace(three, elements=values.tobytes()[:-1]), 0) is None
    assert shard_elements(replace(three, elements=b""), 0) is None


def test_of_what_is_not_recorded_the_figures_are_shown() -> None:
    one = probe((4,), (4,), b"abc")
    assert array_lines(one, 0, 4, 4) == ["min -5. mean 1. max 7., 2 not finite"]
    assert array_lines(replace(one, shards=(Shard(0, (0,), "aa"),)), 0, 4, 4) == ["not recorded"]


def test_crafted_probes_do_no_harm() -> None:
    for shape, extent in (((4,), (10**12,)), ((-1,), (-1,)), ((2, 2), (3,)), ((), (5,)), ((3,), ())):
        assert array_lines(probe(shape, extent, b"abc"), 0, 4, 4)
        assert array_lines(probe(shape, extent, b"abc", "no such type"), 0, 4, 4, 100, 100)


def test_numbers() -> None:
    assert [element_text(v) for v in (-0.0, 1.0, 1.5, math.nan, -math.inf, 1e-30, True, 7)] == [
        "-0.", "1.", "1.5", "nan", "-inf", "1e-30", "True", "7"
    ]  # fmt: skip
    for real in (-0.0, 0.0, 1.5, -2e30, math.inf):
        for imaginary in (-0.0, 0.0, 2.0, -1e-9, -math.inf):
            assert str(complex(element_text(complex(real, imaginary)))) == str(complex(real, imaginary))


def test_coordinates() -> None:
    assert coordinates_text(("x", "y"), (0, 3)) == "x=0 y=3"
    assert coordinates_text((), ()) == ""
