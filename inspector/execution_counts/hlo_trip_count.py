"""Trip counts of HLO's while instructions.

CPU and GPU print the count that they found; TPU prints none, so it is derived here: a loop counts when its condition
compares a carried integer with a constant, its initial value is a constant, and its body adds a constant to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.record import Record
from ..dataflow.meaning import SAME, Does, does
from .execution import MIRRORED, count

MAX_STEPS = 150
"""Most instructions that are looked at for one value: a counter is a few steps away, or it is none."""

TRANSPARENT = SAME | Does.REPEAT
"""Operations that pass a scalar on as it is."""

_INTEGER = re.compile(r"-?[0-9]{1,19}")
"""A number of 64 bits."""


class Carried(Record, frozen=True):
    """Element `index` of what the loop carries, plus `offset`; `index` is None for all of it."""

    index: int | None
    offset: int = 0


Value = int | Carried | tuple["Value | None", ...] | None
"""A constant, something carried, a tuple of values, or unknown."""


Environment = Mapping[int, Value]
"""Values of a computation's parameters, by their numbers."""


class Test(Record, frozen=True):
    """`carried direction bound`: the loop goes on while it holds."""

    carried: Carried
    direction: str
    bound: int


def trip_count(loop: Instruction, module: HloModule) -> int | None:
    """Return how often the body of a while instruction runs; None where the text does not determine it."""
    match loop.backend_config:
        case {"known_trip_count": {"n": str(n)}} if (known := _integer(n)) is not None and known >= 0:
            return known
    condition, body = (_called(loop, key, module) for key in ("condition", "body"))
    test = None if condition is None else _test(condition, module)
    if test is None or body is None or body.root is None or test.carried.index is None:
        return None
    carried = loop.computation.instruction(loop.operands[0]) if loop.operands else None
    start = None if carried is None else _Evaluation(module, {}).element(carried, test.carried.index)
    step = _Evaluation(module, {0: Carried(None)}).element(body.root, test.carried.index)
    if not isinstance(start, int) or not isinstance(step, Carried) or step.index != test.carried.index:
        return None
    return count(start + test.carried.offset, step.offset, test.direction, test.bound)


def _test(condition: Computation, module: HloModule) -> Test | None:
    """The comparison that a condition's result is, looked for through fusions and copies."""
    root = condition.root
    environment: Environment = {0: Carried(None)}
    for _ in range(MAX_STEPS):
        if root is None or root.opcode == "compare":
            break
        evaluation = _Evaluation(module, environment)
        called = _called(root, "calls", module) or _called(root, "to_apply", module)
        if called is not None:
            environment = {number: evaluation.operand(root, number) for number in range(len(root.operands))}
            root = called.root
        else:
            through = does(root.opcode) in TRANSPARENT and root.operands
            root = root.computation.instruction(root.operands[0]) if through else None
    if root is None or root.opcode != "compare":
        return None
    left, right = (_Evaluation(module, environment).operand(root, number) for number in (0, 1))
    direction = root.attributes.get("direction", "")
    if isinstance(left, Carried) and isinstance(right, int) and direction in MIRRORED:
        return Test(left, direction, right)
    if isinstance(right, Carried) and isinstance(left, int) and direction in MIRRORED:
        return Test(right, MIRRORED[direction], left)
    return None


class _Evaluation:
    """Values of instructions, in terms of constants and of their computation's parameters."""

    def __init__(self, module: HloModule, environment: Environment, steps: int = MAX_STEPS) -> None:
        self._module = module
        self._environment = environment
        self._steps = steps

    def operand(self, user: Instruction, number: int) -> Value:
        names = user.operands
        operand = user.computation.instruction(names[number]) if number < len(names) else None
        return None if operand is None else self.of(operand)

    def element(self, instruction: Instruction, index: int) -> Value:
        """An element of an instruction's result; the others of a tuple are not looked at."""
        if instruction.opcode == "tuple":
            return self.operand(instruction, index)
        return _element(self.of(instruction), index)

    def of(self, instruction: Instruction) -> Value:
        if self._steps == 0:
            return None
        self._steps -= 1
        match instruction.opcode:
            case "parameter":
                return self._environment.get(_integer(instruction.literal) or 0)
            case "constant":
                return _integer(instruction.literal)
            case "tuple":
                return tuple(self.operand(instruction, number) for number in range(len(instruction.operands)))
            case "get-tuple-element":
                index = _integer(instruction.attributes.get("index"))
                of = instruction.computation.instruction(instruction.operands[0]) if instruction.operands else None
                return None if index is None or of is None else self.element(of, index)
            case "add":
                return _sum(self.operand(instruction, 0), self.operand(instruction, 1))
            case "subtract":
                right = self.operand(instruction, 1)
                return _sum(self.operand(instruction, 0), -right) if isinstance(right, int) else None
            case "fusion" | "call":
                return self._call(instruction)
            case opcode if does(opcode) in TRANSPARENT:
                return self.operand(instruction, 0)
        return None

    def _call(self, instruction: Instruction) -> Value:
        module = self._module
        called = _called(instruction, "calls", module) or _called(instruction, "to_apply", module)
        if called is None or called.root is None:
            return None
        environment = {number: self.operand(instruction, number) for number in range(len(instruction.operands))}
        inner = _Evaluation(module, environment, self._steps)
        value = inner.of(called.root)
        self._steps = inner._steps
        return value


def _called(instruction: Instruction, attribute: str, module: HloModule) -> Computation | None:
    names = instruction.callees.get(attribute, ())
    return module.computation(names[0]) if len(names) == 1 else None


def _element(value: Value, index: int) -> Value:
    match value:
        case tuple() if index < len(value):
            return value[index]
        case Carried(index=None):
            return Carried(index)
    return None


def _sum(left: Value, right: Value) -> Value:
    match left, right:
        case int(), int():
            return left + right
        case (Carried(index, offset), int(number)) | (int(number), Carried(index, offset)) if index is not None:
            return Carried(index, offset + number)
    return None


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None
