"""Sources of the operands of HLO instructions, and uses of their results, through loops and fusions."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.hlo.graph import BRANCHES, Taken
from ...parsers.hlo.types import TupleShape
from ...parsers.record import Record
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from .hlo import CALL_DONES, CALL_STARTS, HloFlow, HloValue, is_by_operand, is_handed_on
from .meaning import MOVES, POINTWISE, SAME, Does, meaning_of
from .walks import forward
from .work import InstructionWork

MAX_VALUES = 400
"""Values that one walk visits."""

MAX_FOLLOWED = 2_000
"""The same of one that goes into fusions."""

MAX_MOVES = 60
"""Steps from a value within loops to the argument that it is moved from."""

MAX_STEPS = 20
"""Steps from an array to the constant that it is filled with."""

RETURNING = ("body", "calls", "to_apply", *BRANCHES)
"""Attributes that name computations whose results are those of the instruction."""

ZERO = re.compile(r"(?:[{}, ]*+-?0(?:\.0*+)?+(?:e[+-]?0++)?+)++[{}, ]*+")
"""A literal of zeros alone, of a number or of an array: `{ {0, 0}, {-0, 0} }`."""


class Place(NamedTuple):
    """The result of an instruction, or the `element` of it."""

    instruction: Instruction
    element: int | None = None


class Source(Record, frozen=True):
    """A source of a value: an argument of the program, the result of a contraction, or of another operation.

    A `stop` is an instruction that the walk ends at on request, one that is `passed` is no source. `is_moved` is true
    where elements were only moved and converted on the way.
    """

    kind: Literal["argument", "contraction", "other", "stop", "passed"]
    instruction: Instruction
    is_moved: bool


class ValueFlow:
    """The walks over one module; each computation is looked through once."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.graph = module.graph
        self.flow = HloFlow(module)
        self.work = InstructionWork(module)
        self._steps: dict[Place, Sequence[Place]] = {}

    def _caller(self, computation: Computation) -> Instruction | None:
        """The loop or conditional that has a computation as its body or branch, or the fusion or call of it."""
        callers = () if computation.is_entry else self.graph.callers(computation.name)
        return next((caller for attribute, caller in callers if attribute in RETURNING), None)

    def sources(self, start: Place, stops: Container[Instruction] = ()) -> Iterator[Source]:
        """Return the sources of a value's elements, through elementwise operations, also within fusions."""
        return (source for source in self.walk(start, stops) if source.kind != "passed")

    def walk(self, start: Place, stops: Container[Instruction] = ()) -> Iterator[Source]:
        """Yield what a value's elements come through, and their sources."""
        waiting, seen = [(start, True)], {start}
        while waiting and len(seen) < MAX_VALUES:
            place, is_moved = waiting.pop()
            if place.instruction in stops:
                yield Source("stop", place.instruction, is_moved)
                continue
            kind = self.work.of(place.instruction)
            if kind == "contraction" or kind == "other":
                root = self._fused_root(place)
                if root is None:
                    yield Source(kind, place.instruction, is_moved)
                elif root not in seen:
                    seen.add(root)
                    waiting.append((root, is_moved))
                continue
            if place.instruction.opcode == "parameter" and place.instruction.computation.is_entry:
                yield Source("argument", place.instruction, is_moved)
                continue
            yield Source("passed", place.instruction, is_moved)
            for before in self._before(place):
                if before not in seen:
                    seen.add(before)
                    waiting.append((before, is_moved and kind != "elementwise"))

    def maker(self, place: Place) -> Instruction:
        """The argument that a value is moved from, also of a loop that begins with it, or else what computes it."""
        for _ in range(MAX_MOVES):
            kind = self.work.of(place.instruction)
            if kind in ("contraction", "other"):
                before = self._fused_root(place)
            else:
                before = None if kind == "elementwise" else next(iter(self._before(place)), None)
            if before is None:
                break
            place = before
        return place.instruction

    def is_placed(self, start: Place) -> bool:
        """Return whether a value is zero except for the part that each device writes."""
        waiting, seen = [start], {start}
        while waiting and len(seen) < MAX_VALUES:
            place = waiting.pop()
            instruction = place.instruction
            if instruction.opcode == "dynamic-update-slice":
                operands = self.operands(instruction)
                return bool(operands) and self._is_zero(operands[0])
            before = self._before(place) if meaning_of(instruction.opcode).does in SAME else [self._fused_root(place)]
            waiting += [each for each in before if each is not None and each not in seen]
            seen.update(waiting)
        return False

    def _is_zero(self, place: Place) -> bool:
        for _ in range(MAX_STEPS):
            instruction = place.instruction
            if instruction.opcode == "constant":
                return bool(ZERO.fullmatch(instruction.literal or ""))
            root = self._fused_root(place)
            before = [root] if root is not None else self._before(place)
            if len(before) != 1:
                return False
            (place,) = before
        return False

    def _fused_root(self, place: Place) -> Place | None:
        """The value within a fusion that becomes its result, if no other instruction calls what is fused."""
        instruction = place.instruction
        if instruction.opcode not in ("fusion", "call"):
            return None
        body = self.graph.called(instruction, "calls", "to_apply")
        if body is None or body.root is None or len(self.graph.callers(body.name)) != 1:
            return None
        return Place(body.root, place.element)

    def depends(self, start: Place, on: Collection[Instruction]) -> bool:
        """Return whether a value depends on the result of one of these, through loop iterations too."""
        return any(each in on for each in islice(self.dependencies((start,)), MAX_VALUES))

    def dependencies(self, starts: Iterable[Place]) -> Iterator[Instruction]:
        """Yield the instructions that some values depend on, through loop iterations too, the nearest first."""
        seen = dict.fromkeys(starts)
        waiting = list(seen)
        for place in waiting:
            yield place.instruction
            for before in self._before(place):
                if before not in seen:
                    seen[before] = None
                    waiting.append(before)

    def operands(self, instruction: Instruction) -> list[Place]:
        """The values that an instruction takes; those that are not in the text are left out."""
        return _places(self.graph.operands(instruction))

    def values(self, place: Place) -> list[HloValue]:
        """The arrays of the flow that a place is."""
        type = place.instruction.type
        is_whole = place.element is None and isinstance(type, TupleShape)
        is_whole = is_whole and not place.instruction.opcode.endswith("-start")  # there its other half's result
        elements = range(len(type.elements)) if is_whole and isinstance(type, TupleShape) else [place.element]
        return [HloValue(place.instruction, () if each is None else (each,)) for each in elements]

    def ends(self, start: Place) -> Iterator[Instruction | None]:
        """Yield the users of a value behind elementwise operations; None where it becomes an output."""
        reach = forward(self.flow, self.values(start), MOVES | POINTWISE, limit=MAX_FOLLOWED)
        yield from dict.fromkeys(end.instruction for end in reach.ends if self.flow.does(end) is not Does.INDEX)
        yield from [None] if reach.outputs else []

    def _before(self, place: Place) -> Sequence[Place]:
        if place not in self._steps:
            self._steps[place] = self._step_before(place)
        return self._steps[place]

    def _step_before(self, place: Place) -> Sequence[Place]:
        instruction = place.instruction
        operands = self.operands(instruction)
        match instruction.opcode:
            case "get-tuple-element":
                return [Place(each.instruction, instruction.element) for each in operands]
            case opcode if place.element is not None and is_handed_on(opcode):
                return [Place(each.instruction, place.element) for each in operands[:1]]
            case _ if place.element is not None and len(operands) > 1 and is_by_operand(instruction):
                return operands[place.element : place.element + 1]
            case "while":
                body = self.graph.called(instruction, "body")
                results = [] if body is None or body.root is None else [Place(body.root, place.element)]
                return [*(Place(each.instruction, place.element) for each in operands), *results]
            case "conditional":
                roots = (body.root for body in self.graph.branches(instruction))
                return [Place(root, place.element) for root in roots if root is not None]
            case opcode if opcode in CALL_STARTS or opcode in CALL_DONES:
                return self._around_call(instruction, place, operands)
            case "parameter":
                caller = self._caller(instruction.computation)
                if caller is None or caller.opcode == "while":
                    return [] if caller is None else self._before(Place(caller, place.element))
                index = self.graph.handed(caller, instruction)
                taken = [] if index is None else self.operands(caller)[index : index + 1]
                return taken if place.element is None else [Place(each.instruction, place.element) for each in taken]
        return _places(self.work.data(instruction))

    def _around_call(self, instruction: Instruction, place: Place, operands: Sequence[Place]) -> Sequence[Place]:
        """The result of a computation that is called asynchronously, behind the call's end; before it, the call."""
        if instruction.opcode in CALL_DONES:
            return [Place(each.instruction, place.element) for each in operands]
        body = self.graph.called(instruction, "to_apply", "calls")
        return operands if body is None or body.root is None else [Place(body.root, place.element)]


def _places(operands: Iterable[Taken]) -> list[Place]:
    return [Place(maker, index[0] if index else None) for maker, index in operands if maker is not None]


@derived
def value_flow(stage: ParsedStage) -> ValueFlow | None:
    """The walks over a stage's HLO; None where it has none."""
    return None if stage.hlo is None else ValueFlow(stage.hlo)
