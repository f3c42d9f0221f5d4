"""Sizes against numpy's and ml_dtypes' own item sizes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from shardscope.inspector.units import (
    bytes_of,
    format_bytes,
    format_count,
    format_seconds,
    known_product,
    known_sum,
    plural,
)

NUMPY = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128, "bf16": ml_dtypes.bfloat16, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2, "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@pytest.mark.parametrize("dtype", NUMPY)
def test_bytes_as_numpy_counts_them(dtype: str) -> None:
    assert bytes_of(dtype, (3, 5)) == np.zeros((3, 5), NUMPY[dtype]).nbytes


def test_small_types_are_packed() -> None:
    assert bytes_of("i4", (3,)) == 2
    assert bytes_of("f4e2m1fn", (8,)) == 4


def test_scalars_empty_arrays_and_unknown_types() -> None:
    assert bytes_of("f32", ()) == 4
    assert bytes_of("f32", (0, 7)) == 0
    assert bytes_of("f1234", (2,)) is None


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (1536, "1.5 KiB"),
        (3 << 30, "3 GiB"),
        (1_023_700, "0.98 MiB"),
        (1_023_400, "999 KiB"),
        (1_023_488, "0.98 MiB"),  # 999.5 KiB
        (None, "?"),
    ],
)
def test_format_bytes(count: int | None, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1.5 s"),
        (0.0123, "12.3 ms"),
        (4.2e-6, "4.2 µs"),
        (5e-9, "5 ns"),
        (999.7e-9, "1 µs"),
        (3e-12, "3 ps"),
        (0.0, "0 ns"),
        (None, "?"),
    ],
)
def test_format_seconds(seconds: float | None, text: str) -> None:
    assert format_seconds(seconds) == text


SCALES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}


@pytest.mark.parametrize("power", range(-12, 3))
@pytest.mark.parametrize("factor", [1.0, 1.004, 1.234567, 4.5678, 9.94, 9.9])
@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_shown_is_the_number_to_three_digits(power: int, factor: float, sign: int) -> None:
    """Read back it differs by half of the third digit; the unit is the largest in which the number is not below 1."""
    number = sign * factor * 10.0**power
    shown, unit = format_seconds(number).split()
    assert float(shown) * SCALES[unit] == pytest.approx(number, rel=0.0051)
    assert 1 <= abs(float(shown)) < 1000 or unit == "s"
    scale = 10.0 ** (power + 12)
    count, _, prefix = format_count(sign * factor * scale).partition(" ")
    assert float(count) * 1000.0 ** " kMGTP".index(prefix or " ") == pytest.approx(sign * factor * scale, rel=0.0051)
    assert prefix == "P" or abs(float(count)) < 1000 or float(count) == 1000


@pytest.mark.parametrize("number", [1.0, 1.004, 1.006, 9.99, 9.994, 10.04, 10.06, 99.94, 99.96, 100.4, 100.6, 999.4])
@pytest.mark.parametrize("sign", [1, -1])
def test_three_digits_are_those_of_python(number: float, sign: int) -> None:
    assert format_count(sign * number) == f"{float(f'{sign * number:.3g}'):g} "
    assert format_seconds(sign * number * 1e-9) == f"{float(f'{sign * number:.3g}'):g} ns"


@pytest.mark.parametrize("power", range(1, 17))
@pytest.mark.parametrize("sign", [1, -1])
def test_bytes_are_powers_of_1024(power: int, sign: int) -> None:
    for count in (sign * 10**power, sign * (10**power - 1), sign * 7 * 10**power):
        number, unit = format_bytes(count).split()
        scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
        assert float(number) * scale == pytest.approx(count, rel=0.0051)
        assert abs(count) < 1000 * scale or unit == "TiB"
        assert scale == 1 or abs(count) >= 1000 * scale / 1024


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12])
def test_what_would_be_shown_as_1000_takes_the_larger_unit(scale: float) -> None:
    for number in (math.nextafter(scale * 999.5, 0), scale * 999.5, math.nextafter(scale * 999.5, math.inf)):
        if scale < 1:
            assert float(format_seconds(number).split()[0]) < 1000
        else:
            assert float(format_count(number).split()[0]) < 1000


def test_small_and_many() -> None:
    assert (format_seconds(1e-20), format_seconds(1.5e-14)) == ("1e-20 s", "0.01 ps")
    assert [plural(count, "run") for count in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]


@pytest.mark.parametrize(
    ("word", "words"),
    [("copy", "copies"), ("entry", "entries"), ("array", "arrays"), ("key", "keys"), ("survey", "surveys")],
)
def test_words_that_end_in_y(word: str, words: str) -> None:
    """With a vowel before it, it stays."""
    assert [plural(count, word) for count in (1, 2)] == [f"1 {word}", f"2 {words}"]


@pytest.mark.parametrize(
    ("amounts", "total"), [((), 0), ((0,), 0), ((1, 2), 3), ((1, None, 2), None), ((None,), None), ((0.5, 1.5), 2.0)]
)
def test_what_is_not_known_makes_a_sum_unknown(amounts: tuple[float | None, ...], total: float | None) -> None:
    assert known_sum(amounts) == total
    assert known_sum(iter(amounts)) == total


@pytest.mark.parametrize(("count", "product"), [(0, 0.0), (3, 1.5), (None, None)])
def test_what_is_not_known_makes_a_product_unknown(count: int | None, product: float | None) -> None:
    assert known_product(0.5, count) == product
    assert known_product(None, count) is None
