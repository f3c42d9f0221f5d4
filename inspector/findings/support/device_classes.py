"""Partitions of a partitioned program that hold the same values, found without running it.

Partitions are of one class for a value where they compute it from the same values: parameters are sharded as they say,
a collective gives a partition what its group has, and any other operation makes one class of those that agree in all
operands. What is not known differs everywhere, so that partitions of one class always hold the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ....parsers.errors import readable
from ....parsers.hlo import ArrayShape, Computation, Instruction
from ....parsers.hlo.fields import number
from ....parsers.hlo.graph import BRANCHES
from ....parsers.hlo.types import HloType, TupleShape
from ....parsers.sharding_syntax import gspmd
from ...catalog.spellings import HLO_OPCODES
from ...collectives.context import AnalysisContext, context_of
from ...collectives.participants import GroupsOfModule, participants_of
from ...dataflow.hlo import HloValue
from ...dataflow.integers import PartitionNumbers, partition_numbers
from ...ir.array_sharding import ArraySharding
from ...ir.program import Program
from ...ir.stage import ParsedStage
from ...shardings.placement import placement_of
from ...shardings.requested import actual_sharding
from ...shardings.spelled import from_gspmd

Classes = tuple[int, ...]
"""The number of each partition's class, in order of their first partitions."""

State = Classes | tuple["State", ...]
"""The classes of an array, of all arrays of a tuple alike, or of each of its elements."""

MAX_ROUNDS = 64
"""Rounds of a loop until what it carries is known; each makes classes finer."""

MAX_DEPTH = 64
"""Calls inside of each other."""

UNKNOWN = frozenset(
    ("partition-id", "replica-id", "rng", "rng-get-and-update-state", "infeed", "recv", "recv-done", "custom-call")
)
"""Opcodes of which nothing is said: each partition may get something of its own."""

POSITIONED = ("reduce-scatter", "all-to-all", "ragged-all-to-all")
"""Kinds of which each member of a group gets another part."""


def device_classes(program: Program, stage: ParsedStage, watched: Iterable[Instruction]) -> dict[int, Classes]:
    """The classes of the operands of some instructions, by offset, in all calls taken together."""
    context, entry = context_of(program), None if stage.hlo is None else stage.hlo.entry
    numbers = partition_numbers(stage, context.partitions)
    if numbers is None or entry is None:
        return {}
    classes = _DeviceClasses(
        context,
        numbers,
        _arguments(program),
        frozenset(each.start for each in watched),
        GroupsOfModule(context.partitions),
    )
    classes.run(entry)
    return classes.found


def _arguments(program: Program) -> dict[str, ArraySharding]:
    """Return the compiled program's sharding of each argument, by path: texts leave out unconstrained ones."""
    found = ((each.path, actual_sharding(each, program)) for each in program.capture.arguments)
    return {path: sharding for path, sharding in found if sharding is not None}


@dataclass(slots=True)
class _DeviceClasses:
    """Follows the values of a program; `found` has the classes of the operands of `watched` instructions, by offset."""

    context: AnalysisContext
    numbers: PartitionNumbers
    arguments: Mapping[str, ArraySharding]
    watched: frozenset[int]
    written: GroupsOfModule
    found: dict[int, Classes] = field(default_factory=dict)
    _known: dict[tuple[object, ...], State] = field(default_factory=dict)
    _depth: int = 0

    def run(self, entry: Computation) -> None:
        """Follow the program from its parameters on."""
        self._computation(entry, tuple(map(self._parameter, entry.parameters)), self._same)

    @property
    def _same(self) -> Classes:
        return (0,) * self.context.partitions

    @property
    def _different(self) -> Classes:
        return tuple(range(self.context.partitions))

    def _parameter(self, parameter: Instruction) -> State:
        sharding = readable(lambda: parameter.sharding)
        if isinstance(parameter.type, TupleShape):
            elements = parameter.type.elements
            if not isinstance(sharding, gspmd.TupleSharding) or len(sharding.elements) != len(elements):
                return self._different
            return tuple(map(self._placed, sharding.elements, elements))
        if sharding is None:
            known = self.arguments.get(parameter.op_name or "")
            return self._different if known is None else self._held(known)
        return self._placed(sharding, parameter.type)

    def _placed(self, sharding: gspmd.Sharding, type: HloType) -> State:
        if not isinstance(type, ArrayShape) or not self.context.meshes:
            return self._different
        try:
            return self._held(from_gspmd(sharding, len(type.dims), self.context.meshes[0]))
        except ValueError:
            return self._different

    def _held(self, sharding: ArraySharding) -> State:
        placement = placement_of(sharding)
        held = zip(placement.tiles, placement.manual, placement.sums, strict=True)
        parts = dict(zip(placement.devices, held, strict=True))
        if len(parts) != self.context.partitions:
            return self._different
        return _numbered([parts.get(partition) for partition in range(self.context.partitions)])

    def _computation(self, computation: Computation, arguments: tuple[State, ...], control: Classes) -> State:
        key = (computation.name, arguments, control)
        if key not in self._known:
            if self._depth == MAX_DEPTH:
                return self._different
            self._depth += 1
            states: dict[str, State] = {}
            for instruction in computation.instructions:
                states[instruction.name] = self._result(instruction, states, arguments, control)
            self._depth -= 1
            root = computation.root
            self._known[key] = self._different if root is None else states[root.name]
        return self._known[key]

    def _result(
        self, instruction: Instruction, states: dict[str, State], arguments: tuple[State, ...], control: Classes
    ) -> State:
        if instruction.opcode == "parameter":
            position = number(instruction.literal)
            return self._different if position is None or position >= len(arguments) else arguments[position]
        operands = [
            self._element(states.get(each.name, self._different), each.index) for each in instruction.references
        ]
        match instruction.opcode:
            case "tuple":
                return tuple(operands)
            case "get-tuple-element" if operands:
                index = number(instruction.attributes.get("index"))
                return self._different if index is None else self._element(operands[0], (index,))
            case "while" if operands:
                return self._loop(instruction, operands[0], control)
            case "conditional" if operands:
                return self._branches(instruction, operands, control)
            case "copy" | "opt-barrier" | "add-dependency" if operands:
                return operands[0]
            case "fusion" | "call" | "async-start":
                return self._called(instruction, ("calls", "to_apply", "called_computations"), tuple(operands), control)
        if instruction.opcode in UNKNOWN:
            return self._different
        taken = self._joined(operands)
        if instruction.start in self.watched:
            self.found[instruction.start] = self._joined([self.found.get(instruction.start, taken), taken, control])
        if instruction.opcode in HLO_OPCODES:
            return self._communicated(instruction, taken)
        return taken if taken == self._same else self._counted(instruction) or taken

    def _counted(self, instruction: Instruction) -> Classes | None:
        """The classes of an integer that partitions compute from their numbers, such as where a block of theirs is."""
        type = instruction.type
        is_integer = isinstance(type, ArrayShape) and not type.dims and type.dtype[0] in "sup"
        found = self.numbers.scalar(HloValue(instruction)) if is_integer else None
        return None if found is None else _numbered(found)

    def _called(self, call: Instruction, keys: Sequence[str], arguments: tuple[State, ...], control: Classes) -> State:
        names = [name for key in keys for name in call.callees.get(key, ())]
        computation = call.computation.module.computation(names[0]) if len(names) == 1 else None
        return self._different if computation is None else self._computation(computation, arguments, control)

    def _loop(self, loop: Instruction, carried: State, control: Classes) -> State:
        for _ in range(MAX_ROUNDS):
            decided = self._joined([control, self._called(loop, ("condition",), (carried,), control)])
            after = self._joined_with(carried, self._called(loop, ("body",), (carried,), decided))
            if decided != control:
                after = self._joined_with(after, decided)
            if after == carried:
                return carried
            carried = after
        return self._different

    def _branches(self, branch: Instruction, operands: list[State], control: Classes) -> State:
        decided = self._joined([control, operands[0]])
        names = [name for key in BRANCHES for name in branch.callees.get(key, ())]
        result: State = decided
        for name, operand in zip(names, operands[1:], strict=False):
            computation = branch.computation.module.computation(name)
            if computation is None or len(names) != len(operands) - 1:
                return self._different
            result = self._joined_with(self._computation(computation, (operand,), decided), result)
        return result

    def _communicated(self, instruction: Instruction, taken: Classes) -> Classes:
        """Return what partitions receive from others."""
        who = participants_of(instruction, None, (), self.written, self.context)
        known = {member for group in (*who.groups, *who.pairs) for member in group}
        if not all(0 <= member < self.context.partitions for member in known):
            return self._different
        received: list[object] = [None] * self.context.partitions
        for source, target in who.pairs:
            received[target] = taken[source]
        by_position = HLO_OPCODES[instruction.opcode] in POSITIONED
        for group in who.groups:
            held = tuple(taken[member] for member in group)
            for position, member in enumerate(group):
                received[member] = held, position if by_position else 0
        return _numbered(received) if who.pairs or len(known) == len(received) else self._different

    def _joined_with(self, one: State, other: State) -> State:
        """Return, for each array, the classes of partitions that agree in both states."""
        if not _is_tuple(one) and not _is_tuple(other):
            return self._joined([one, other])
        wide = one if _is_tuple(one) else other
        pairs = ((self._element(one, (index,)), self._element(other, (index,))) for index in range(len(wide)))
        return tuple(self._joined_with(*pair) for pair in pairs)

    def _element(self, state: State, path: Sequence[int]) -> State:
        for index in path:
            if _is_tuple(state):
                state = state[index] if index < len(state) else self._different  # type: ignore[assignment]
        return state

    def _joined(self, states: Sequence[State]) -> Classes:
        """Partitions that agree in all of several states."""
        different = {leaf: None for state in states for leaf in _leaves(state)}
        different.pop(self._same, None)
        if len(different) < 2:
            return next(iter(different), self._same)
        return _numbered([*zip(*different, strict=True)])


def _is_tuple(state: State) -> bool:
    return not state or not isinstance(state[0], int)


def _leaves(state: State) -> list[Classes]:
    if _is_tuple(state):
        return [leaf for element in state for leaf in _leaves(element)]  # type: ignore[arg-type]
    return [state]  # type: ignore[list-item]


def _numbered(values: Sequence[object]) -> Classes:
    numbers: dict[object, int] = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in values)
