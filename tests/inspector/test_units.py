"""Sizes against numpy's and ml_dtypes' own item sizes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from shardscope.inspector.units import bytes_of, format_bytes, format_seconds

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
    [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1536, "1.5 KiB"), (3 << 30, "3 GiB"), (None, "?")],
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
        (3e-12, "3 ps"),
        (0.0, "0 ns"),
        (None, "?"),
    ],
)
def test_format_seconds(seconds: float | None, text: str) -> None:
    assert format_seconds(seconds) == text
