"""Integers that the partitions of a compiled program compute from their own numbers, as where a slice begins."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ....parsers.hlo import ArrayShape, Instruction
from ...ir.types import array_type
from .hlo_values import HloFlow, HloValue

MAX_ELEMENTS = 1 << 16
"""Limit for the elements of an array, times the partitions."""

MAX_EVALUATED = 500
"""Instructions that are evaluated for one number."""

MAX_DEPTH = 100
"""Instructions one behind the other."""

LARGEST_INTEGER = 1 << 63
"""Range of a program's integers: numbers beyond it are not followed."""

Numbers = tuple[tuple[int, ...], ...]
"""The elements of an array on each partition."""

SAME = frozenset(("copy", "convert", "bitcast", "bitcast-convert", "reshape", "domain"))

BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "maximum": max,
    "minimum": min,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "divide": lambda a, b: int(a / b) if b else 0,
    "remainder": lambda a, b: a - b * int(a / b) if b else a,
    "shift-left": lambda a, b: a << b if 0 <= b < 32 else 0,
    "shift-right-logical": lambda a, b: a >> b if 0 <= b < 32 else 0,
    "shift-right-arithmetic": lambda a, b: a >> b if 0 <= b < 32 else 0,
}

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}

_NUMBER = re.compile(r"-?\d{1,18}|true|false")


@dataclass(slots=True)
class PartitionNumbers:
    """Evaluates small arrays of integers on each of `partitions`."""

    flow: HloFlow
    partitions: int
    known: dict[HloValue, Numbers | None] = field(default_factory=dict)
    left: int = MAX_EVALUATED
    depth: int = 0

    def scalar(self, value: HloValue) -> tuple[int, ...] | None:
        """The number that each partition has; None where it depends on anything but its own."""
        self.left = MAX_EVALUATED
        found = self._numbers(value)
        return None if found is None or any(len(each) != 1 for each in found) else tuple(each[0] for each in found)

    def _numbers(self, value: HloValue) -> Numbers | None:
        origin = self.flow.origin(value)
        if origin is None or origin.path:
            return None
        if origin not in self.known:
            self.left -= 1
            self.known[origin] = None
            if self.left >= 0 and self.depth < MAX_DEPTH:
                self.depth += 1
                found = self._result(origin)
                self.depth -= 1
                is_small = found is not None and all(abs(number) < LARGEST_INTEGER for each in found for number in each)
                self.known[origin] = found if is_small else None
        return self.known[origin]

    def _result(self, value: HloValue) -> Numbers | None:
        instruction = value.instruction
        type = instruction.type
        count = array_type(type).elements if isinstance(type, ArrayShape) else None
        if count is None or not 0 < count * self.partitions <= MAX_ELEMENTS:
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
        return _applied(instruction, count, found)

    def _operand(self, value: HloValue, position: int) -> Numbers | None:
        operand = self.flow.operand(value, position)
        return None if operand is None else self._numbers(operand)


def _applied(instruction: Instruction, count: int, operands: list[Numbers]) -> Numbers | None:
    first, *others = operands
    opcode = instruction.opcode
    if opcode in SAME:
        return first
    if opcode == "broadcast" and all(len(each) == 1 for each in first):
        return tuple(each * count for each in first)
    if opcode == "dynamic-slice" and len(others) == 1:
        return tuple(_sliced(each, start[0], count) for each, start in zip(first, others[0], strict=True))
    by_element = zip(*operands, strict=True)
    if opcode == "negate":
        return tuple(tuple(-number for number in each) for each in first)
    if opcode in BINARY and len(operands) == 2:
        apply = BINARY[opcode]
        return tuple(tuple(map(apply, one, other)) for one, other in by_element)
    if opcode == "compare" and len(operands) == 2:
        compare = COMPARED.get(instruction.attributes.get("direction", ""))
        return compare and tuple(tuple(map(int, map(compare, one, other))) for one, other in by_element)
    if opcode == "select" and len(operands) == 3:
        return tuple(_selected(*each) for each in by_element)
    if opcode == "clamp" and len(operands) == 3:
        return tuple(
            tuple(max(low, min(number, high)) for low, number, high in zip(*each, strict=False)) for each in by_element
        )
    return None


def _sliced(numbers: tuple[int, ...], start: int, count: int) -> tuple[int, ...]:
    start = max(0, min(start, len(numbers) - count))
    return numbers[start : start + count]


def _selected(which: tuple[int, ...], yes: tuple[int, ...], no: tuple[int, ...]) -> tuple[int, ...]:
    which = which * len(yes) if len(which) == 1 else which
    return tuple(one if chosen else other for chosen, one, other in zip(which, yes, no, strict=True))


def _literal(text: str) -> tuple[int, ...]:
    """The elements of a constant of integers; none of one of another kind, or of which only a part is printed."""
    inside = text.strip("{} ")
    parts = [part.strip(" {}") for part in inside.split(",")]
    if any(_NUMBER.fullmatch(part) is None for part in parts):
        return ()
    return tuple(int(part == "true") if part in ("true", "false") else int(part) for part in parts)
