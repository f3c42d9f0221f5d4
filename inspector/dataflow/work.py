"""The kind of work that an instruction of a compiled program does, including all that is fused in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.fields import number
from ...parsers.hlo.graph import Taken
from ..catalog.opcodes import HLO_ELEMENTWISE, HLO_UNCHANGED

Work = Literal["moves", "elementwise", "control", "contraction", "other"]

PASSING = HLO_UNCHANGED | frozenset(
    {"copy-start", "copy-done", "bitcast", "bitcast-convert", "convert", "reshape", "transpose", "slice", "broadcast"}
    | {"dynamic-slice", "dynamic-update-slice", "pad", "concatenate", "reverse", "all-gather", "all-gather-start"}
    | {"collective-permute", "collective-permute-start", "collective-permute-done", "all-to-all", "all-reduce"}
    | {"all-reduce-start", "reduce-scatter", "async-start", "async-done", "partition-id", "iota", "parameter"}
    | {"constant", "tuple", "call-start", "call-done", "get-tuple-element"}
)
"""Opcodes that hand on elements, to other places or other devices."""

ELEMENTWISE = PASSING | HLO_ELEMENTWISE | {"map", "rng-bit-generator"}
"""Opcodes each element of whose result is made of few elements, moved ones included."""

CONTRACTIONS = frozenset({"dot", "ragged-dot", "convolution"})
MATMULS = ("matmul", "gemm", "dot", "conv")
"""Words in the targets of custom calls that contract dimensions."""

DATA_OPERANDS = {"dynamic-slice": 1, "dynamic-update-slice": 2, "add-dependency": 1}
"""Number of operands that have elements; the others are indices."""


class InstructionWork:
    """The work of one module's instructions; each fused computation is visited once."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.graph = module.graph
        self._fused: dict[str, tuple[frozenset[str], frozenset[int]]] = {}
        self._works: dict[Instruction, Work] = {}

    def of(self, instruction: Instruction) -> Work:
        """Return the kind of work of an instruction, including all that is fused in it."""
        if instruction not in self._works:
            self._works[instruction] = self._work_of(instruction)
        return self._works[instruction]

    def _work_of(self, instruction: Instruction) -> Work:
        if instruction.opcode in ("while", "conditional"):
            return "control"
        opcodes = self._opcodes(instruction)
        if opcodes & CONTRACTIONS:
            return "contraction"
        if PASSING.issuperset(opcodes):
            return "moves"
        return "elementwise" if ELEMENTWISE.issuperset(opcodes) else "other"

    def _opcodes(self, instruction: Instruction) -> frozenset[str]:
        opcode = instruction.opcode
        if opcode == "custom-call":
            target = instruction.attributes.get("custom_call_target", "").lower()
            return frozenset({"dot" if any(word in target for word in MATMULS) else opcode})
        if opcode not in ("fusion", "call"):
            return frozenset({opcode})
        return frozenset[str]().union(*(self._fused_in(name)[0] for name in self._called(instruction)))

    def _called(self, instruction: Instruction) -> Iterator[str]:
        return chain.from_iterable(self.graph.callees(instruction).values())

    def _fused_in(self, name: str) -> tuple[frozenset[str], frozenset[int]]:
        """The opcodes that make the elements of a fusion's result, and the parameters that these are made of."""
        if name not in self._fused:
            self._fused[name] = frozenset(), frozenset()  # a cycle, which only a broken text has
            body = self.module.computation(name)
            waiting = [] if body is None or body.root is None else [body.root]
            seen, opcodes, numbers = set(waiting), set[str](), set[int]()
            while waiting:
                instruction = waiting.pop()
                opcodes |= self._opcodes(instruction)
                if instruction.opcode == "parameter" and (index := number(instruction.literal)) is not None:
                    numbers.add(index)
                onward = [maker for maker, _ in self.data(instruction) if maker is not None]
                waiting += [each for each in onward if each not in seen]
                seen.update(onward)
            self._fused[name] = frozenset(opcodes), frozenset(numbers)
        return self._fused[name]

    def data(self, instruction: Instruction) -> Sequence[Taken]:
        """The operands that have elements of the result: no indices."""
        operands = self.graph.operands(instruction)
        if instruction.opcode in ("fusion", "call"):
            used = frozenset[int]().union(*(self._fused_in(name)[1] for name in self._called(instruction)))
            return [each for index, each in enumerate(operands) if index in used]
        return operands[: DATA_OPERANDS.get(instruction.opcode)]
