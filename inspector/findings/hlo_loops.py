"""The while loops of a program as it comes out of the partitioner: what they carry, and what becomes of values in them.

There nothing is fused yet, and what the partitioner inserted stands beside what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.hlo.fields import number
from ..capture.model import Capture
from ..collectives.kinds import HLO_OPCODES
from ..program import read

MOST_STEPS = 2_000

LINEAR = frozenset(("transpose", "reshape", "convert", "copy", "bitcast", "negate", "get-tuple-element", "slice"))
"""What a sum of values may go through one by one as well as after it is summed."""

PASSING = frozenset(("copy", "bitcast", "get-tuple-element", "opt-barrier"))


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A collective whose result is only added to element `index` of what the loop carries."""

    collective: Instruction
    index: int
    add: Instruction


class Loop:
    """A while loop and its body."""

    def __init__(self, module: HloModule, instruction: Instruction, body: Computation) -> None:
        self.module = module
        self.instruction = instruction
        self.body = body
        self.results = body.root.operands if body.root is not None and body.root.opcode == "tuple" else ()

    @cached_property
    def collectives(self) -> tuple[Instruction, ...]:
        """The collectives in the body itself."""
        return tuple(each for each in self.body.instructions if each.opcode in HLO_OPCODES)

    @cached_property
    def users(self) -> Mapping[str, list[Instruction]]:
        """The users of each instruction of the body."""
        found: dict[str, list[Instruction]] = {}
        for instruction in self.body.instructions:
            for name in dict.fromkeys(instruction.operands):
                found.setdefault(name, []).append(instruction)
        return found

    def carried(self, instruction: Instruction | None) -> int | None:
        """Which element of what the loop carries an instruction takes out at the beginning of an iteration."""
        seen = 0
        while instruction is not None and instruction.opcode in PASSING and seen < MOST_STEPS:
            of = self.body.instruction(instruction.operands[0]) if instruction.operands else None
            if instruction.opcode == "get-tuple-element" and of is not None and of.opcode == "parameter":
                return number(instruction.attributes.get("index"))
            instruction, seen = of, seen + 1
        return None

    def is_same(self, index: int) -> bool:
        """Whether an element of what the loop carries never changes."""
        if index >= len(self.results):
            return False
        return self.carried(self.body.instruction(self.results[index])) == index

    def is_invariant(self, instruction: Instruction) -> bool:
        """Whether a value of the body is the same in all iterations, and made of something that the loop carries."""
        waiting, seen, carries = [instruction], {instruction.name}, False
        while waiting:
            one = waiting.pop()
            index = self.carried(one)
            if index is not None:
                if not self.is_same(index):
                    return False
                carries = True
                continue
            if one.opcode in ("parameter", "rng", "rng-bit-generator", "infeed", "custom-call", "while", "conditional"):
                return False
            for name in one.operands:
                operand = self.body.instruction(name)
                if operand is None or len(seen) > MOST_STEPS:
                    return False
                if name not in seen:
                    seen.add(name)
                    waiting.append(operand)
        return carries

    def accumulated(self, collective: Instruction) -> Accumulator | None:
        """What a sum's result is added to, if nothing else is done with it, nor with that before."""
        if not self._adds(collective):
            return None
        waiting, seen = [collective], {collective.name}
        adds: list[tuple[Instruction, int]] = []
        while waiting:
            value = waiting.pop()
            users = self.users.get(value.name, [])
            if not users or len(seen) > MOST_STEPS:
                return None
            for user in users:
                index = self._added_to(user, value)
                if index is not None:
                    adds.append((user, index))
                elif self._is_linear(user, value):
                    if user.name not in seen:
                        seen.add(user.name)
                        waiting.append(user)
                else:
                    return None
        return Accumulator(collective, adds[0][1], adds[0][0]) if adds else None

    def _added_to(self, user: Instruction, value: Instruction) -> int | None:
        """The element of the carry that an addition adds a value to, and that becomes its result and nothing else."""
        if user.opcode != "add" or len(set(user.operands)) != 2:
            return None
        (other,) = {*user.operands} - {value.name}
        index = self.carried(self.body.instruction(other))
        if index is None or index >= len(self.results) or self._ends_as(user) != index:
            return None
        return index if [each.name for each in self.users.get(other, [])] == [user.name] else None

    def _ends_as(self, instruction: Instruction) -> int | None:
        """The element of the carry that an instruction alone becomes."""
        for _ in range(MOST_STEPS):
            users = self.users.get(instruction.name, [])
            if len(users) != 1:
                return None
            if users[0].opcode == "tuple" and users[0].is_root:
                return self.results.index(instruction.name)
            if users[0].opcode not in ("copy", "convert", "bitcast"):
                return None
            instruction = users[0]
        return None

    def _is_linear(self, user: Instruction, value: Instruction) -> bool:
        if user.opcode in LINEAR:
            return True
        if user.opcode in ("multiply", "divide") and len(user.operands) == 2:
            other = self.body.instruction(next((name for name in user.operands if name != value.name), ""))
            is_first = user.operands[0] == value.name
            return self._is_constant(other) and (is_first or user.opcode == "multiply")
        # A reduction of dimensions of size one, as JAX writes the gradients of biases.
        return user.opcode == "reduce" and user.operands[0] == value.name and self._adds(user)

    def _adds(self, instruction: Instruction) -> bool:
        """Whether what an instruction applies to its elements is an addition."""
        names = instruction.callees.get("to_apply", ())
        applied = self.module.computation(names[0]) if len(names) == 1 else None
        return applied is not None and applied.root is not None and applied.root.opcode == "add"

    def _is_constant(self, instruction: Instruction | None) -> bool:
        while instruction is not None and instruction.opcode in ("broadcast", "reshape", "convert", "copy"):
            instruction = self.body.instruction(instruction.operands[0]) if instruction.operands else None
        return instruction is not None and instruction.opcode == "constant"


def loops_of(capture: Capture) -> Iterator[Loop]:
    """The loops of a program as it comes out of the partitioner, in text order."""
    stage = capture.stage("hlo-spmd")
    module = None if stage is None else read(stage)
    if not isinstance(module, HloModule):
        return
    for instruction in module.with_opcode(("while",)):
        names = instruction.callees.get("body", ())
        body = module.computation(names[0]) if len(names) == 1 else None
        if body is not None:
            yield Loop(module, instruction, body)
