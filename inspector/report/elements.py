"""The elements of recorded arrays, from their bits, and how they print."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from functools import lru_cache

from ..capture.protocol.values import Probe

Element = float | int | bool | complex

PLAIN = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
"""numpy's names, and the codes of the standard library's `struct`."""

COMPLEX = {"complex64": "f", "complex128": "d"}

_SMALL_FLOAT = re.compile(r"float\d_e(\d)m(\d)(fnuz|b11fnuz|fn|b11)?")


def shard_elements(probe: Probe, number: int) -> tuple[Element, ...] | None:
    """The recorded elements of one shard, row-major; None where none are, or the type has no numbers."""
    if not 0 <= number < len(probe.shards) or len(probe.elements) % len(probe.shards):
        return None
    return decode(probe.dtype, shard_bits(probe, number), math.prod(probe.extent))


def shard_bits(probe: Probe, number: int) -> bytes:
    """The bits of the recorded elements of one shard, little-endian, row-major."""
    size = len(probe.elements) // len(probe.shards)
    return probe.elements[number * size : (number + 1) * size]


def decode(dtype: str, data: bytes, count: int) -> tuple[Element, ...] | None:
    """`count` numbers of a type that numpy or ml_dtypes names; None if they are not in the data."""
    try:
        if dtype in PLAIN:
            return struct.unpack(f"<{count}{PLAIN[dtype]}", data)
        if dtype in COMPLEX:
            parts = struct.unpack(f"<{2 * count}{COMPLEX[dtype]}", data)
            return tuple(complex(*pair) for pair in zip(parts[::2], parts[1::2], strict=True))
        if dtype == "bfloat16":
            words = struct.unpack(f"<{count}H", data)
            return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(word << 16 for word in words)))
    except struct.error:
        return None
    if dtype in ("int4", "uint4", "int2", "uint2") and len(data) == count:
        bits = int(dtype[-1])
        signed = dtype.startswith("int")
        low = (byte & ((1 << bits) - 1) for byte in data)
        return tuple(n - (1 << bits) if signed and n >> (bits - 1) else n for n in low)
    table = _small_floats(dtype)
    return None if table is None or len(data) != count else tuple(table[byte] for byte in data)


@lru_cache(maxsize=16)
def _small_floats(dtype: str) -> tuple[float, ...] | None:
    """All 256 values of an 8-bit float, as the OCP and ml_dtypes define it from its name."""
    match = _SMALL_FLOAT.fullmatch(dtype)
    if match is None or 1 + int(match[1]) + int(match[2]) != 8:
        return None
    exponent_bits, mantissa_bits, kind = int(match[1]), int(match[2]), match[3] or ""
    bias = 11 if "b11" in kind else (1 << (exponent_bits - 1)) - (0 if "fnuz" in kind else 1)
    return tuple(_small_float(byte, exponent_bits, mantissa_bits, bias, kind) for byte in bytes(range(256)))


def _small_float(byte: int, exponent_bits: int, mantissa_bits: int, bias: int, kind: str) -> float:
    sign = -1.0 if byte >> 7 else 1.0
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = byte & ((1 << mantissa_bits) - 1)
    last = (1 << exponent_bits) - 1
    if "fnuz" in kind and byte == 0x80:
        return math.nan
    if kind == "fn" and exponent == last and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    if not kind and exponent == last:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


DIGITS = 6
"""Significant digits of a float."""


def rows(
    probe: Probe, number: int, height: int, width: int, top: int = 0, left: int = 0
) -> tuple[tuple[str, ...], ...] | None:
    """A window of `height` rows and `width` columns of one shard's recorded elements; None where there are none.

    All dimensions but the last are counted through as rows.
    """
    elements = shard_elements(probe, number)
    if elements is None:
        return None
    columns = probe.extent[-1] if probe.extent else 1
    count = len(elements) // columns if columns else 0
    return tuple(
        tuple(map(element_text, elements[row * columns + left : row * columns + min(left + width, columns)]))
        for row in range(top, min(top + height, count))
    )


def array_lines(probe: Probe, number: int, height: int, width: int, top: int = 0, left: int = 0) -> list[str]:
    """A window of one shard as numpy writes it, from a row and a column on; its figures where elements are left out."""
    cells = rows(probe, number, height, width, top, left)
    shard = probe.shards[number]
    figures = (("min", shard.minimum), ("mean", shard.mean), ("max", shard.maximum))
    shown = " ".join(f"{name} {element_text(value)}" for name, value in figures if value is not None)
    if shard.non_finite:
        shown += f", {shard.non_finite} not finite"
    if cells is None:
        return [shown or "not recorded"]
    if not probe.shape:
        return [cells[0][0] if cells and cells[0] else "not recorded"]
    columns = probe.shape[-1]
    cut = math.prod(probe.shape) > sum(map(len, cells))
    widths = [len(cell) for row in cells for cell in row]
    lines = [
        f"[{' '.join(cell.rjust(max(widths)) for cell in row)}{' …' if columns > left + len(row) else ''}]"
        for row in cells
    ]
    if len(probe.shape) > 1 and lines:
        lines = [f"{'[' if index == 0 else ' '}{line}" for index, line in enumerate(lines)]
        lines[-1] += "]" if not cut else " …"
    return [*lines, f"{shape_text(probe.shape)}: {shown}"] if cut else lines or ["[]"]


def element_text(value: Element) -> str:
    """The shortest text of a number to six significant digits; −0.0 keeps its sign."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        return f"{element_text(value.real)}{'' if str(value.imag).startswith('-') else '+'}{element_text(value.imag)}j"
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{DIGITS}g}"
    return f"{text}." if text.lstrip("-").isdigit() else text


def shape_text(shape: Sequence[int]) -> str:
    """`[2,4]`."""
    return f"[{','.join(map(str, shape))}]"


def coordinates_text(axes: Sequence[str], coordinates: Sequence[int]) -> str:
    """`x=0 y=1`."""
    return " ".join(f"{axis}={place}" for axis, place in zip(axes, coordinates, strict=False))


def copies_differ(probe: Probe) -> bool:
    """True if devices hold different bits of the same part of an argument, an output or a constrained value.

    Inside a shard_map each device has a value of its own, and of an unreduced array a summand.
    """
    if "unreduced" in probe.type or "U:" in probe.type:
        return False
    held: dict[str, str] = {}
    for shard in probe.shards:
        if (shard.part or not probe.path) and held.setdefault(shard.part, shard.digest) != shard.digest:
            return True
    return False


def unequal_copies(probes: Sequence[Probe]) -> tuple[int, ...]:
    """The numbers of those whose copies differ, in their order."""
    return tuple(number for number, probe in enumerate(probes) if copies_differ(probe))
