"""The kind of work that an instruction of a compiled program does, including all that is fused in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain
from operator import or_
from typing import Literal

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.fields import number
from ...parsers.hlo.graph import Taken
from .hlo import meaning_in
from .meaning import MOVES, POINTWISE, STRAIGHT, Does

COMPUTED = MOVES | POINTWISE

Work = Literal["moves", "elementwise", "control", "contraction", "other"]


class InstructionWork:
    """The work of one module's instructions; each fused computation is visited once."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.graph = module.graph
        self._fused: dict[str, tuple[Does, frozenset[int]]] = {}
        self._works: dict[Instruction, Work] = {}

    def of(self, instruction: Instruction) -> Work:
        """Return the kind of work of an instruction, including all that is fused in it."""
        if instruction not in self._works:
            self._works[instruction] = self._work_of(instruction)
        return self._works[instruction]

    def _work_of(self, instruction: Instruction) -> Work:
        does = self._does(instruction)
        if does & Does.CONTRACT:
            return "contraction"
        if does in MOVES:
            return "moves"
        if does in COMPUTED:
            return "elementwise"
        return "control" if does in Does.CALL | Does.BRANCH else "other"

    def _does(self, instruction: Instruction) -> Does:
        opcode = instruction.opcode
        if opcode in ("fusion", "call"):
            return reduce(or_, (self._fused_in(name)[0] for name in self._called(instruction)), STRAIGHT)
        meaning = meaning_in(instruction)
        return meaning.does if meaning.others is Does.INDEX else meaning.does | meaning.others

    def _called(self, instruction: Instruction) -> Iterator[str]:
        return chain.from_iterable(self.graph.callees(instruction).values())

    def _fused_in(self, name: str) -> tuple[Does, frozenset[int]]:
        """The classes of the operations that make a fusion's result, and the parameters that it is made of."""
        if name not in self._fused:
            self._fused[name] = STRAIGHT, frozenset()  # a cycle, which only a broken text has
            body = self.module.computation(name)
            waiting = [] if body is None or body.root is None else [body.root]
            seen, does, numbers = set(waiting), STRAIGHT, set[int]()
            while waiting:
                instruction = waiting.pop()
                does |= self._does(instruction)
                if instruction.opcode == "parameter" and (index := number(instruction.literal)) is not None:
                    numbers.add(index)
                onward = [maker for maker, _ in self.data(instruction) if maker is not None]
                waiting += [each for each in onward if each not in seen]
                seen.update(onward)
            self._fused[name] = does, frozenset(numbers)
        return self._fused[name]

    def data(self, instruction: Instruction) -> Sequence[Taken]:
        """The operands that have elements of the result: no indices."""
        operands = self.graph.operands(instruction)
        if instruction.opcode in ("fusion", "call"):
            used = frozenset[int]().union(*(self._fused_in(name)[1] for name in self._called(instruction)))
            return [each for index, each in enumerate(operands) if index in used]
        meaning = meaning_in(instruction)
        return [each for index, each in enumerate(operands) if meaning.of(index) is not Does.INDEX]
