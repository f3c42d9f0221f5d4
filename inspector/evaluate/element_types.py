"""Element types of HLO as numpy has them: floats in float64, complex numbers in complex128, integers as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...parsers.hlo import ArrayShape, HloType
from .errors import NotEvaluatedError

Array = Any
"""An array of numpy."""

Value = Any
"""An array, or a tuple of values."""

FLOATS = {"f64": 64, "f32": 32, "bf16": 16, "f16": 16} | dict.fromkeys(
    ("f8e4m3fn", "f8e5m2", "f8e4m3", "f8e3m4", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu"), 8
)
"""The bits of each type that is evaluated in float64."""

PRECISION = {"f64": 2**-53, "f32": 2**-24, "bf16": 2**-8, "f16": 2**-11}
"""Half the distance between 1 and the next larger number."""

NARROW = {"s4": (-8, 7), "u4": (0, 15), "s2": (-2, 1), "u2": (0, 3)}
"""The least and the greatest integer of types that numpy has not, and that are kept in 8 bits."""

TYPES: dict[str, Any] = (
    dict.fromkeys(FLOATS, np.dtype(np.float64))
    | {"pred": np.dtype(bool), "c64": np.dtype(np.complex128), "c128": np.dtype(np.complex128)}
    | {
        f"{letter}{bits}": np.dtype(f"{kind}{bits}")
        for letter, kind in (("s", "int"), ("u", "uint"))
        for bits in (8, 16, 32, 64)
    }
    | {name: np.dtype(np.uint8 if name[0] == "u" else np.int8) for name in NARROW}
    | {"token": np.dtype(bool)}
)


def array_type(type: HloType) -> ArrayShape:
    """Return the type of an array; raises NotEvaluatedError of a tuple."""
    if not isinstance(type, ArrayShape):
        raise NotEvaluatedError(f"{type} is not an array")
    return type


def numpy_type(type: HloType) -> Any:
    """Return the type of elements."""
    name = array_type(type).dtype
    if name not in TYPES:
        raise NotEvaluatedError(f"elements of type {name}")
    return TYPES[name]


def converted(array: Array, name: str) -> Array:
    """The elements in another type; a float becomes the nearest integer towards zero, limited to those of the type."""
    wanted = TYPES[name]
    if name == "pred":
        return array != 0
    if array.dtype.kind == "c" and wanted.kind != "c":
        array = array.real
    if wanted.kind in "iu" and array.dtype.kind == "f":
        least, greatest = NARROW.get(name) or (np.iinfo(wanted).min, np.iinfo(wanted).max)
        whole = np.nan_to_num(np.trunc(array), nan=0.0)
        inside = np.clip(whole, float(least), np.nextafter(float(greatest), 0) if greatest > 2**53 else float(greatest))
        exact = inside.astype(wanted)
        return np.where(whole >= float(greatest), wanted.type(greatest), exact).astype(wanted)
    return wrapped(array.astype(wanted, copy=False), name)


def rounded(array: Array, name: str) -> Array:
    """The nearest elements that a type has, as the compiler computes with constants."""
    if name not in ("f32", "bf16", "f16") or array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        return from_bits(bits_of(array, name), name).reshape(array.shape)


def wrapped(array: Array, name: str) -> Array:
    """The same modulo the number of integers that a narrow type has."""
    if name not in NARROW:
        return array
    least, greatest = NARROW[name]
    return ((array.astype(np.int16) - least) % (greatest - least + 1) + least).astype(array.dtype)


def unwritten(type: HloType) -> Value:
    """Memory that nothing has written: NaN, or an integer that nothing means."""
    shape = array_type(type)
    element = numpy_type(shape)
    if element.kind in "iu":
        return np.full(shape.dims, np.iinfo(element).max // 3, element)
    return np.full(shape.dims, np.nan if element.kind in "fc" else False, element)


def bits_of(array: Array, name: str) -> Array:
    """The bits of elements as unsigned integers of the type's size; of a float those of the nearest of its type."""
    if name == "bf16":
        single = np.ascontiguousarray(array.astype(np.float32)).view(np.uint32)
        rounded = ((single >> 16) & 1) + np.uint32(0x7FFF) + single
        return np.where(np.isnan(array), np.uint32(0x7FC0), rounded >> 16).astype(np.uint16)
    narrow = np.ascontiguousarray(array.astype(_stored(name, array.dtype), copy=False))
    size = narrow.dtype.itemsize
    return narrow.view(np.uint8).reshape(*narrow.shape, size) if size > 8 else narrow.view(f"u{size}")


def _stored(name: str, other: np.dtype[Any]) -> Any:
    """numpy's type with the same bits; `other` of integers."""
    stored = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "c64": np.complex64, "c128": np.complex128}
    if name in FLOATS and name not in stored:
        raise NotEvaluatedError(f"bits of {name}")
    return stored.get(name, other)


def from_bits(bits: Array, name: str) -> Array:
    """The elements with these bits."""
    if name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    found = bits.view(_stored(name, TYPES[name]))
    if name == "c128":
        found = found.reshape(found.shape[:-1])
    return found.astype(TYPES[name], copy=False)


def bits(name: str) -> int:
    """The size of an element in memory."""
    if name in FLOATS:
        return FLOATS[name]
    return {"c64": 64, "c128": 128, "pred": 8}.get(name) or (8 if name in NARROW else TYPES[name].itemsize * 8)
