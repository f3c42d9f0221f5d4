"""How many devices a script wants: read off the error that too few, or too many, of them made."""

from __future__ import annotations

import math
import re

MOST = 1 << 14
"""Nobody simulates more devices in one process."""

# numpy; jax._src.sharding_impls and mesh_utils (JAX 0.7 to 0.12); XLA's compile of a pmap.
_RESHAPE = re.compile(r"cannot reshape array of size (\d+) into shape \(([\d, ]*)\)")
_MESH_SHAPE = re.compile(r"Number of devices \d+ must (?:be >=|equal) the product of mesh_shape \(([\d, ]*)\)")
_REQUIRES = re.compile(r"requires (\d+) logical devices")
_SPEAKS = re.compile(r"\bdevices\b", re.IGNORECASE)
_COUNTS = re.compile(r"\bdevices\(|device_count")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def is_about_devices(message: str, line: str) -> bool:
    """Whether it is worth asking `wanted`."""
    return any(pattern.search(message) for pattern in (_RESHAPE, _SPEAKS)) or _COUNTS.search(line) is not None


def is_about_divisibility(message: str) -> bool:
    """Whether an error says that an array cannot be divided evenly among devices."""
    return "divisible" in message or "evenly divide" in message


def wanted(message: str, line: str, count: int) -> int | None:
    """The number of devices that would have avoided an error; None where the error is not about their number.

    `message` is the exception's text, `line` the user's source line that raised it, `count` the devices there were.
    What JAX and NumPy say is understood; of another text that speaks of devices, or a line that counts them, the only
    other number is taken.
    """
    number = None
    if (match := _RESHAPE.search(message)) and int(match[1]) == count:
        number = _product(match[2])
    elif match := _MESH_SHAPE.search(message):
        number = _product(match[1])
    elif match := _REQUIRES.search(message):
        number = int(match[1])
    elif _SPEAKS.search(message):
        number = _only_other_number(message, count)
    if number is None and _COUNTS.search(line):
        number = _only_other_number(line, count)
        if number is not None and "index out of range" in message:
            number += 1
    return number if number is not None and 0 < number <= MOST and number != count else None


def _product(sizes: str) -> int:
    return math.prod(int(size) for size in sizes.split(",") if size.strip())


def _only_other_number(text: str, count: int) -> int | None:
    numbers = {int(number) for number in _NUMBER.findall(text)} - {count, 0, 1}
    return numbers.pop() if len(numbers) == 1 else None
