"""Sizes of types, how sizes and times print, and sums and groups of things."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from typing import TypeVar

BITS: dict[str, int] = {
    "bool": 8,  # what a device stores, not the one bit of information
    "token": 0,
    **{f"{kind}{bits}": bits for kind in "iu" for bits in (1, 2, 4, 8, 16, 32, 64)},
    **{f"f{bits}": bits for bits in (16, 32, 64)},
    "bf16": 16,
    "c64": 64,
    "c128": 128,
    "key<fry>": 64,
    "key<rbg>": 128,
    "key<unsafe_rbg>": 128,
    "float0": 0,
}
"""Bits per element, by JAX's short names of dtypes; eight-bit and smaller floats are read off their names."""

BYTES = (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30), ("TiB", 2.0**40))
COUNTS = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
TIMES = (("ps", 1e-12), ("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))

Amount = TypeVar("Amount", int, float)
K = TypeVar("K")
V = TypeVar("V")

_SMALL_FLOAT = re.compile(r"f(?P<bits>[468])e\d+m\d+\w*")


def bits_of(dtype: str) -> int | None:
    """Bits of one element, or None for a dtype that is not known."""
    if (small := _SMALL_FLOAT.fullmatch(dtype)) is not None:
        return int(small["bits"])
    return BITS.get(dtype)


def bytes_of(dtype: str, dims: Sequence[int]) -> int | None:
    """Bytes of an array, its elements packed; None where the dtype is not known."""
    bits = bits_of(dtype)
    return None if bits is None else -(-bits * math.prod(dims) // 8)


def grouped(keyed: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, in their order."""
    found: dict[K, list[V]] = {}
    for key, value in keyed:
        found.setdefault(key, []).append(value)
    return found


def known_sum(amounts: Iterable[Amount | None]) -> Amount | None:
    """Return the sum; None where an amount is not known."""
    known = list(amounts)
    return None if None in known else sum(each for each in known if each is not None)


def known_product(amount: Amount | None, count: int | None) -> Amount | None:
    """Return the amount of so many; None where either is not known."""
    return None if amount is None or count is None else amount * count


def format_bytes(count: int | None) -> str:
    """`1.5 KiB`: three significant digits, powers of 1024; `?` for an unknown size."""
    return "?" if count is None else _in_units(count, BYTES)


def plural(count: int, word: str) -> str:
    """`1 run`, `2 runs`, `2 copies`."""
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{count:,} {word}s"


def with_more(first: str, count: int) -> str:
    """`w1`, `w1 and 2 more`: so many things by the first of them."""
    return f"{first} and {count - 1:,} more" if count > 1 else first


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def ranges_text(numbers: Sequence[int]) -> str:
    """`0–3, 8`: numbers, by runs."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs_text(runs)


def runs_text(runs: Iterable[Sequence[int]]) -> str:
    """The same of runs, each from its first number to its last; they may be as long as a file claims."""
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)


def format_count(count: float) -> str:
    """`1.5 G`: three significant digits, powers of 1000; nothing behind the number below 1000."""
    return _in_units(count, COUNTS)


def format_seconds(seconds: float | None) -> str:
    """`1.2 ms`: three significant digits; `?` for an unknown time."""
    if seconds is None:
        return "?"
    if 0 < abs(seconds) / 1e-12 < 0.01:
        return f"{seconds:.2g} s"
    return _in_units(seconds, TIMES) if seconds else "0 ns"


def _in_units(number: float, units: Iterable[tuple[str, float]]) -> str:
    """A number in the first unit in which three digits of it are less than 1000, or in the last."""
    text = ""
    for unit, scale in units:
        text = f"{_three_digits(number / scale)} {unit}"
        if abs(float(text.partition(" ")[0])) < 1000:
            break
    return text


def _three_digits(number: float) -> str:
    digits = 2 - bisect((10, 100), abs(number))
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
