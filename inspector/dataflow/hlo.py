"""Paths of a compiled program's values: through tuples, calls, fusions, loops and branches, and out again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.fields import number
from ..catalog.spellings import COMBINED, DONES, HLO_OPCODES, STARTS
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from .graph import AnyUse, Output
from .meaning import Does, Meaning, does, meaning_of, meaning_of_call

MAX_CALLS = 64
"""Calls inside each other that are followed."""

Path = tuple[int, ...]
"""The element of a tuple, then of a tuple in it, …"""


KIND_BY_OPCODE = {**HLO_OPCODES, **STARTS}

CALL_STARTS = frozenset({"async-start", "call-start", "fusion-start"})
"""Opcodes that begin the work of a computation: what it gives is the result of their other halves."""

CALL_DONES = frozenset(start.replace("-start", "-done") for start in CALL_STARTS)

RETUPLED = frozenset({"tuple", "get-tuple-element", "copy-start", "copy-done"}) | CALL_STARTS | CALL_DONES
"""Opcodes that hand values on in other tuples than they take."""


CARRYING = RETUPLED | {"fusion", "call", "while", "conditional"}
"""Opcodes whose operands are values elsewhere: in a computation, or in other tuples."""


@lru_cache(512)
def is_handed_on(opcode: str) -> bool:
    """Return whether a result is the first operand, with the same tuples around it."""
    return does(opcode) is Does.FORWARD and opcode not in RETUPLED


def meaning_in(instruction: Instruction) -> Meaning:
    """Return the meaning of an instruction, of a custom call by its target."""
    if instruction.opcode == "custom-call":
        return meaning_of_call(instruction.call_target)
    return meaning_of(instruction.opcode)


def is_by_operand(instruction: Instruction) -> bool:
    """Return whether an element of the result is made of the operand of its position alone, where there are several."""
    if KIND_BY_OPCODE.get(instruction.opcode) in COMBINED:
        # A permute of a block in place also takes the array that it writes to, and where the blocks start.
        return "slice_sizes" not in instruction.attributes
    return instruction.opcode == "tuple"


class HloValue(NamedTuple):
    """One array: an element of an instruction's result, in a computation that was reached through some calls."""

    instruction: Instruction
    path: Path = ()
    calls: tuple[Instruction, ...] = ()


class HloUse(AnyUse, frozen=True):
    """An instruction that takes a value, which is an array, as its operand of that position."""

    value: HloValue
    instruction: Instruction
    position: int

    @property
    def result(self) -> HloValue:
        """The instruction's result, if it is one array."""
        return HloValue(self.instruction, (), self.value.calls)


class HloFlow:
    """Users of the instructions of a module, and the calls of its computations."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.graph = module.graph

    def does(self, use: HloUse) -> Does:
        """Return what an instruction does with its operand."""
        return meaning_in(use.instruction).of(use.position)

    def after(self, use: HloUse) -> tuple[HloValue]:
        """The part of the instruction's result that is made of that operand."""
        is_combined = is_by_operand(use.instruction) and len(use.instruction.operands) > 1
        return (HloValue(use.instruction, (use.position,) if is_combined else (), use.value.calls),)

    def uses(self, value: HloValue, *, carried: bool = True) -> Iterator[HloUse | HloValue | Output | None]:
        """Yield each use of a value, or the value that it is elsewhere; None where it cannot be followed."""
        instruction = value.instruction
        takers, elements = self.graph.users(instruction)
        for user, position, element in takers:
            if element == value.path[: len(element)]:
                yield from self._used_by(value, value.path[len(element) :], user, position)
        for user in elements.get(value.path[0], ()) if value.path else ():
            yield HloValue(user, value.path[1:], value.calls)
        if instruction is instruction.computation.root:
            yield from self._returned(value)

    def operand(self, value: HloValue, position: int) -> HloValue | None:
        """The array that an instruction takes as its operand of that position."""
        operands = self.graph.operands(value.instruction)
        maker, index = operands[position] if position < len(operands) else (None, ())
        return None if maker is None else HloValue(maker, index, value.calls)

    def origin(self, value: HloValue) -> HloValue | None:
        """Return the value behind tuples, calls and unchanged carries; the value itself if there is none."""
        seen = 0
        while seen < MAX_CALLS * MAX_CALLS:
            seen += 1
            before = self._before(value)
            if before is value:
                return value
            if before is None:
                return None
            value = before
        return None

    def _before(self, value: HloValue) -> HloValue | None:
        instruction, path = value.instruction, value.path
        match instruction.opcode:
            case "get-tuple-element":
                index, made = instruction.element, self.operand(value, 0)
                return None if made is None or index is None else HloValue(made.instruction, (index, *path), made.calls)
            case "tuple" if path:
                made = self.operand(value, path[0])
                return None if made is None else HloValue(made.instruction, (*made.path, *path[1:]), made.calls)
            case "parameter":
                return self._argument(value)
            case "fusion" | "call":
                root = self._root(instruction, "calls", "to_apply")
                if root is None or len(value.calls) >= MAX_CALLS:
                    return None
                return HloValue(root, path, (*value.calls, instruction))
            case "while":
                return self._carried(instruction, path, value.calls)
            case "copy-done":
                made = self.operand(value, 0)
                return None if made is None or made.instruction.opcode != "copy-start" else self.operand(made, 0)
            case opcode if opcode not in DONES and is_handed_on(opcode):
                made = self.operand(value, 0)
                return None if made is None else HloValue(made.instruction, path, made.calls)
        return value

    def _argument(self, value: HloValue) -> HloValue | None:
        instruction = value.instruction
        position = number(instruction.literal)
        callers = value.calls[-1:] or self._callers(instruction)
        if not callers:
            return value  # of the whole program
        if len(callers) != 1 or position is None:
            return None
        (call,) = callers
        if call.opcode == "while":
            return self._carried(call, value.path, value.calls[:-1])
        if call.opcode not in ("fusion", "call"):
            return None
        made = self.operand(HloValue(call, (), value.calls[:-1]), position)
        return None if made is None else HloValue(made.instruction, (*made.path, *value.path), made.calls)

    def _carried(self, loop: Instruction, path: Path, calls: tuple[Instruction, ...]) -> HloValue | None:
        """Return the initial value of a loop carry that never changes."""
        root = self._root(loop, "body")
        if root is None or not path or root.opcode != "tuple":
            return None
        result = self.operand(HloValue(root, path, (*calls, loop)), path[0])
        while result is not None and result.instruction.opcode in ("copy", "get-tuple-element"):
            if result.instruction.opcode == "get-tuple-element":
                index, made = result.instruction.element, self.operand(result, 0)
                if made is None or made.instruction.opcode != "parameter" or index != path[0] or len(path) != 1:
                    return None
                begin = self.operand(HloValue(loop, (), calls), 0)
                return None if begin is None else HloValue(begin.instruction, (*begin.path, *path), begin.calls)
            result = self.operand(result, 0)
        return None

    def _root(self, instruction: Instruction, *attributes: str) -> Instruction | None:
        computation = self.graph.called(instruction, *attributes)
        return None if computation is None else computation.root

    def _callers(self, instruction: Instruction) -> tuple[Instruction, ...]:
        return tuple(caller for _, caller in self.graph.callers(instruction.computation.name))

    def _used_by(
        self, value: HloValue, path: Path, user: Instruction, position: int
    ) -> Sequence[HloUse | HloValue | None]:
        calls = value.calls
        match user.opcode:
            case opcode if opcode not in CARRYING:
                if position == 0 and is_handed_on(opcode):
                    return (HloValue(user, path, calls),)
                return (None if path else HloUse(value, user, position),)
            case "tuple":
                return (HloValue(user, (position, *path), calls),)
            case "get-tuple-element":
                return (HloValue(user, path[1:], calls),) if path and path[0] == user.element else ()
            case "copy-start":
                return (HloValue(user, (0,), calls),)
            case "copy-done":
                return (HloValue(user, (), calls),) if path[:1] == (0,) else ()
            case opcode if opcode in CALL_DONES:
                return (HloValue(user, path, calls),)
        entered = self.graph.entered(user, position)
        if not entered or len(calls) >= MAX_CALLS:
            entered = [None, *entered]
        inside = (*calls, user)
        return [None if parameter is None else HloValue(parameter, path, inside) for parameter in entered]

    def _returned(self, value: HloValue) -> Iterator[HloValue | Output | None]:
        computation = value.instruction.computation
        calls = value.calls[-1:] or self._callers(value.instruction)
        if not calls:
            yield Output(value.path) if computation is self.module.entry else None
        for call in calls:
            callees = self.graph.callees(call) if call.opcode == "while" else {}
            if computation.name in callees.get("condition", ()):
                yield None  # it decides how often a loop runs
            elif callees:
                around = value.calls or (call,)
                yield HloValue(call, value.path, around[:-1])
                yield from (
                    HloValue(parameter, value.path, around)
                    for name in (*callees.get("body", ()), *callees.get("condition", ()))
                    for body in (self.module.computation(name),)
                    for parameter in (() if body is None else body.parameters[:1])
                )
            else:
                yield HloValue(call, value.path, value.calls[:-1])


@derived
def hlo_flow(stage: ParsedStage) -> HloFlow | None:
    """The flow of a stage's HLO; None where it has none."""
    return None if stage.hlo is None else HloFlow(stage.hlo)
