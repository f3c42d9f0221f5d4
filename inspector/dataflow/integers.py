"""Integers that the partitions of a compiled program compute from their own numbers, as where a slice begins."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from ...parsers.hlo import ArrayShape, Instruction
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from .hlo import HloFlow, HloValue, hlo_flow

MAX_ELEMENTS = 1 << 16
"""Limit for the elements of an array, times the partitions."""

MAX_EVALUATED = 500
"""Instructions that are evaluated for one number."""

MAX_DEPTH = 100
"""Instructions one behind the other."""

Numbers = tuple[tuple[int, ...], ...]
"""The elements of an array on each partition."""

SAME = frozenset(("copy", "convert", "bitcast", "bitcast-convert", "reshape", "domain"))


def _divided(_: int, a: int, b: int) -> int:
    return math.trunc(Fraction(a, b)) if b else -1


def _signed(bits: int, number: int) -> int:
    number %= 1 << bits
    return number - (1 << bits) if number >> (bits - 1) else number


OPERATIONS: dict[str, tuple[int, Callable[..., int]]] = {
    "negate": (1, lambda _, a: -a),
    "add": (2, lambda _, a, b: a + b),
    "subtract": (2, lambda _, a, b: a - b),
    "multiply": (2, lambda _, a, b: a * b),
    "maximum": (2, lambda _, a, b: max(a, b)),
    "minimum": (2, lambda _, a, b: min(a, b)),
    "and": (2, lambda _, a, b: a & b),
    "or": (2, lambda _, a, b: a | b),
    "xor": (2, lambda _, a, b: a ^ b),
    "divide": (2, _divided),
    "remainder": (2, lambda bits, a, b: a - b * _divided(bits, a, b) if b else a),
    "shift-left": (2, lambda bits, a, b: a << b if 0 <= b < bits else 0),
    "shift-right-logical": (2, lambda bits, a, b: a % (1 << bits) >> b if 0 <= b < bits else 0),
    "shift-right-arithmetic": (2, lambda bits, a, b: _signed(bits, a) >> (b if 0 <= b < bits else bits - 1)),
    "compare EQ": (2, lambda _, a, b: a == b),
    "compare NE": (2, lambda _, a, b: a != b),
    "compare LT": (2, lambda _, a, b: a < b),
    "compare LE": (2, lambda _, a, b: a <= b),
    "compare GT": (2, lambda _, a, b: a > b),
    "compare GE": (2, lambda _, a, b: a >= b),
    "select": (3, lambda _, chosen, a, b: a if chosen else b),
    "clamp": (3, lambda _, low, number, high: min(max(low, number), high)),
}
"""The number of operands, and the result before it wraps around, given the bits of its type (openxla.org, Operation
Semantics): a division by zero sets all bits, and a shift by more than there are leaves none but the sign's."""

_INTEGER = re.compile(r"(?P<sign>[su])(?P<bits>[1-9]\d?)|pred")
_NUMBER = re.compile(r"-?\d{1,18}|true|false")


@dataclass(slots=True)
class PartitionNumbers:
    """Evaluates small arrays of integers on each of `partitions`."""

    flow: HloFlow
    partitions: int
    known: dict[HloValue, Numbers | None] = field(default_factory=dict)
    left: int = MAX_EVALUATED
    depth: int = 0
    is_cut: bool = False

    def scalar(self, value: HloValue) -> tuple[int, ...] | None:
        """The number that each partition has; None where it depends on anything but its own."""
        self.left, self.is_cut = MAX_EVALUATED, False
        found = self._numbers(value)
        return None if found is None or any(len(each) != 1 for each in found) else tuple(each[0] for each in found)

    def _numbers(self, value: HloValue) -> Numbers | None:
        origin = self.flow.origin(value)
        if origin is None or origin.path:
            return None
        if origin in self.known:
            return self.known[origin]
        if self.left == 0 or self.depth == MAX_DEPTH:
            self.is_cut = True
            return None
        self.left -= 1
        self.depth += 1
        self.known[origin] = None  # in a cycle, which only a broken text has
        found = self.known[origin] = self._result(origin)
        self.depth -= 1
        if found is None and self.is_cut:
            del self.known[origin]  # from elsewhere, limits may not be in the way
        return found

    def _result(self, value: HloValue) -> Numbers | None:
        instruction = value.instruction
        type = instruction.type
        integer = _INTEGER.fullmatch(type.dtype) if isinstance(type, ArrayShape) else None
        count = array_type(type).elements
        if integer is None or count is None or not 0 < count * self.partitions <= MAX_ELEMENTS:
            return None
        match instruction.opcode:
            case "partition-id":
                return tuple((number,) for number in range(self.partitions))
            case "constant":
                numbers = _literal(instruction.literal or "")
                return (numbers,) * self.partitions if len(numbers) == count else None
            case "iota" if isinstance(type, ArrayShape) and len(type.dims) == 1:
                return (tuple(range(count)),) * self.partitions
        operands = [self._operand(value, position) for position in range(len(instruction.references))]
        found = [each for each in operands if each is not None]
        if not found or len(found) != len(operands):
            return None
        results = _applied(instruction, count, found, int(integer["bits"] or 1))
        if results is None or any(len(each) != count for each in results):
            return None
        return tuple(tuple(_wrapped(number, integer) for number in each) for each in results)

    def _operand(self, value: HloValue, position: int) -> Numbers | None:
        operand = self.flow.operand(value, position)
        return None if operand is None else self._numbers(operand)


@derived
def partition_numbers(stage: ParsedStage, partitions: int) -> PartitionNumbers | None:
    """The numbers of a stage's HLO, each evaluated once for all that ask; None where it has none."""
    flow = hlo_flow(stage)
    return None if flow is None else PartitionNumbers(flow, partitions)


def _applied(instruction: Instruction, count: int, operands: list[Numbers], bits: int) -> Numbers | None:
    first, *others = operands
    opcode = instruction.opcode
    if opcode in SAME:
        return first
    if opcode == "broadcast" and all(len(each) == 1 for each in first):
        return tuple(each * count for each in first)
    if opcode == "dynamic-slice" and len(others) == 1:
        return tuple(_sliced(each, start[0], count) for each, start in zip(first, others[0], strict=True))
    # What chooses or limits may be one number for all elements.
    wide = [tuple(each * count if len(each) == 1 else each for each in operand) for operand in operands]
    direction = f" {instruction.attributes.get('direction', '')}" if opcode == "compare" else ""
    taken, apply = OPERATIONS.get(f"{opcode}{direction}", (None, None))
    if apply is None or len(operands) != taken or any(len(each) != count for operand in wide for each in operand):
        return None
    return tuple(
        tuple(apply(bits, *numbers) for numbers in zip(*each, strict=True)) for each in zip(*wide, strict=True)
    )


def _wrapped(number: int, type: re.Match[str]) -> int:
    if not type["bits"]:
        return int(number != 0)
    bits = int(type["bits"])
    return _signed(bits, number) if type["sign"] == "s" else number % (1 << bits)


def _sliced(numbers: tuple[int, ...], start: int, count: int) -> tuple[int, ...]:
    start = max(0, min(start, len(numbers) - count))
    return numbers[start : start + count]


def _literal(text: str) -> tuple[int, ...]:
    """The elements of a constant of integers; none of one of another kind, or of which only a part is printed."""
    inside = text.strip("{} ")
    parts = [part.strip(" {}") for part in inside.split(",")]
    if any(_NUMBER.fullmatch(part) is None for part in parts):
        return ()
    return tuple(int(part == "true") if part in ("true", "false") else int(part) for part in parts)
