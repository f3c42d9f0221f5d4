"""The while loops of a program as it comes out of the partitioner: what they carry, and what becomes of values in them.

There nothing is fused yet, and what the partitioner inserted stands beside what was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.hlo.fields import number
from ...parsers.record import Record
from ..catalog.spellings import HLO_OPCODES
from ..ir.program import Program
from .hlo import meaning_in
from .meaning import SAME, Does

MAX_STEPS = 2_000

LINEAR = SAME | Does.REPEAT
"""Classes of operations that, applied to a sum of values, equal the sum of their results."""

ZERO = re.compile(r"-?0(?:\.0*)?(?:e[+-]?0+)?")

OPAQUE = frozenset(
    ("parameter", "rng", "rng-bit-generator", "infeed", "custom-call", "while", "conditional", "call", "recv")
)
"""Operations whose results may differ per execution."""

PASSING = frozenset(("copy", "bitcast", "get-tuple-element", "opt-barrier"))


class Accumulator(Record, frozen=True):
    """A collective whose result is only added to element `index` of what the loop carries."""

    collective: Instruction
    index: int
    add: Instruction


class Value(Record, frozen=True):
    """The result of an instruction in the body, or one element of it."""

    maker: Instruction
    element: tuple[int, ...] = ()


class Loop:
    """A while loop and its body."""

    def __init__(self, module: HloModule, instruction: Instruction, body: Computation) -> None:
        self.module = module
        self.graph = module.graph
        self.instruction = instruction
        self.body = body
        is_tuple = body.root is not None and body.root.opcode == "tuple"
        self.results = self.operands(body.root) if is_tuple and body.root is not None else ()

    @cached_property
    def collectives(self) -> tuple[Instruction, ...]:
        """The collectives in the body itself."""
        return tuple(each for each in self.body.instructions if each.opcode in HLO_OPCODES)

    def operands(self, instruction: Instruction) -> tuple[Value, ...]:
        """The values that an instruction takes; those that are not in the text are left out."""
        return tuple(Value(maker, index) for maker, index in self.graph.operands(instruction) if maker is not None)

    def users(self, value: Value) -> list[Instruction]:
        """The instructions that take a value, in text order."""
        takers, elements = self.graph.users(value.maker)
        found = {user for user, _, element in takers if element == value.element}
        found.update(*([] if value.element else elements.values()))
        return sorted(found, key=lambda each: each.start)

    def carried(self, value: Value | None) -> int | None:
        """Return the loop-carried element that a value is at the beginning of an iteration."""
        passed = None if value is None else self._passed_on(value)
        is_element = passed is not None and passed.maker.opcode == "parameter" and len(passed.element) == 1
        return passed.element[0] if passed is not None and is_element else None

    def _passed_on(self, value: Value) -> Value:
        """The value that copies, tuples and barriers, as `jax.checkpoint` puts around its operands, pass on."""
        for _ in range(MAX_STEPS):
            maker, element, of = value.maker, value.element, self.operands(value.maker)
            if maker.opcode == "tuple" and element and len(of) == len(maker.operands) > element[0]:
                value = Value(of[element[0]].maker, of[element[0]].element + element[1:])
            elif maker.opcode in PASSING and of:
                index = number(maker.attributes.get("index")) if maker.opcode == "get-tuple-element" else None
                value = Value(of[0].maker, (*of[0].element, *(() if index is None else (index,)), *element))
            else:
                break
        return value

    def is_same(self, index: int) -> bool:
        """Return whether an element of a loop's carry never changes."""
        return index < len(self.results) and self.carried(self.results[index]) == index

    def is_invariant(self, value: Value) -> bool:
        """Return whether a value of the body is equal in all iterations, and depends on the loop's carry."""
        waiting, seen, carries = [value], {value}, False
        while waiting:
            one = self._passed_on(waiting.pop())
            index = self.carried(one)
            if index is not None:
                if not self.is_same(index):
                    return False
                carries = True
                continue
            operands = self.operands(one.maker)
            if one.maker.opcode in OPAQUE or len(operands) < len(one.maker.operands) or len(seen) > MAX_STEPS:
                return False
            waiting += [operand for operand in dict.fromkeys(operands) if operand not in seen]
            seen.update(operands)
        return carries

    def accumulated(self, collective: Instruction) -> Accumulator | None:
        """Return the accumulator that a sum is added to, if neither has other uses."""
        return self._ends(collective, self._added_to) if self._adds(collective) else None

    def stacked(self, collective: Instruction) -> Accumulator | None:
        """The array of all iterations that a result becomes a part of, if nothing else is done with either."""
        return self._ends(collective, self._stacked_in)

    def rotated(self, collective: Instruction) -> int | None:
        """The element of the carry that is what it was before, moved by a permutation, and nothing else."""
        operands = self.operands(collective)
        index = self.carried(operands[0]) if len(operands) == 1 else None
        return index if index is not None and self._ends_as(Value(collective)) == index else None

    def is_discarded(self, index: int) -> bool:
        """Return whether nothing uses an element of a loop's result."""
        takers, elements = self.graph.users(self.instruction)
        taken = {element[:1] for _, _, element in takers}
        unused = not any(each.is_root or any(self.graph.users(each)) for each in elements.get(index, ()))
        return unused and not self.instruction.is_root and taken.isdisjoint(((), (index,)))

    def _ends(self, collective: Instruction, end: Callable[[Instruction, Value], int | None]) -> Accumulator | None:
        """Return the places at which everything computed from a collective's result, linearly, ends."""
        waiting, seen = [Value(collective)], {collective.name}
        takers, _ = self.graph.users(collective)
        waiting += [Value(collective, element) for element in {element for _, _, element in takers} if element]
        added: list[Accumulator] = []
        while waiting:
            value = waiting.pop()
            users = self.users(value)
            if len(seen) > MAX_STEPS or (not users and value.maker is not collective):
                return None
            for user in users:
                index = end(user, value)
                if index is not None:
                    added.append(Accumulator(collective, index, user))
                elif not self._is_linear(user, value):
                    return None
                elif user.name not in seen:
                    seen.add(user.name)
                    waiting.append(Value(user))
        return added[0] if added else None

    def _added_to(self, user: Instruction, value: Value) -> int | None:
        """The element of the carry that an addition adds a value to, and that becomes its result and nothing else."""
        operands = self.operands(user)
        if user.opcode != "add" or len(set(operands)) != 2:
            return None
        other = operands[1] if operands[0] == value else operands[0]
        index = self._accumulating(other)
        if index is None or self._ends_as(Value(user), additions=True) != index:
            return None
        return index if self.users(other) == [user] else None

    def _accumulating(self, value: Value) -> int | None:
        """The element of the carry that a value is, with nothing but other values added to it."""
        waiting, seen = [value], {value}
        while waiting and len(seen) < MAX_STEPS:
            one = waiting.pop()
            if len(self.users(one)) != 1:
                continue
            if (index := self.carried(one)) is not None:
                return index
            operands = self.operands(one.maker) if one.maker.opcode == "add" else ()
            waiting += [each for each in operands if each not in seen]
            seen.update(operands)
        return None

    def _stacked_in(self, user: Instruction, value: Value) -> int | None:
        """The element of the carry of which an update replaces a part by a value, and that nothing else uses."""
        operands = self.operands(user)
        if user.opcode != "dynamic-update-slice" or operands[1:2] != (value,) or operands[0] == value:
            return None
        index = self.carried(operands[0])
        if index is None or self._ends_as(Value(user)) != index:
            return None
        return index if self.users(operands[0]) == [user] else None

    def _ends_as(self, value: Value, *, additions: bool = False) -> int | None:
        """The element of the carry that a value alone becomes, or that it is with other values added to it."""
        for _ in range(MAX_STEPS):
            users = self.users(value)
            if len(users) != 1:
                return None
            if users[0].opcode == "tuple" and users[0].is_root:
                return self.results.index(value)
            if users[0].opcode not in ("copy", "convert", "bitcast", *(("add",) if additions else ())):
                return None
            value = Value(users[0])
        return None

    def _is_linear(self, user: Instruction, value: Value) -> bool:
        operands = self.operands(user)
        position = operands.index(value) if value in operands else len(operands)
        does = meaning_in(user).of(position)
        if does is Does.ADD:  # parts of what is accumulated, added up before
            return all(self._accumulating(each) is None for each in operands)
        if does in Does.SCALE | Does.PLACE:  # by constants; into zeros, as JAX writes the gradient of a slice
            others = [self._filled_with(each) for each in (*operands[:position], *operands[position + 1 :])]
            is_zero = does is Does.SCALE or all(ZERO.fullmatch(each.literal or "") for each in others)
            return is_zero and all(each.opcode == "constant" for each in others)
        # A reduction of dimensions of size one, as JAX writes the gradients of biases.
        return does in LINEAR or user.opcode == "slice" or (does is Does.REDUCE and self._adds(user))

    def _adds(self, instruction: Instruction) -> bool:
        names = instruction.callees.get("to_apply", ())
        applied = self.module.computation(names[0]) if len(names) == 1 else None
        return applied is not None and applied.root is not None and applied.root.opcode == "add"

    def _filled_with(self, value: Value) -> Instruction:
        for _ in range(MAX_STEPS):
            operands = self.operands(value.maker)
            if value.maker.opcode not in ("broadcast", "reshape", "convert", "copy") or not operands:
                break
            value = operands[0]
        return value.maker


def loops_of(program: Program) -> Iterator[Loop]:
    """The loops of a program as it comes out of the partitioner, in text order."""
    module = program.hlo("hlo-spmd")
    if module is None:
        return
    for instruction in module.with_opcode(("while",)):
        names = instruction.callees.get("body", ())
        body = module.computation(names[0]) if len(names) == 1 else None
        if body is not None:
            yield Loop(module, instruction, body)
