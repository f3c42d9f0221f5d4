"""Where the values of a compiled program go: through tuples, calls, fusions, loops and branches, and out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ....parsers.hlo import Computation, HloModule, Instruction
from ....parsers.hlo.fields import number
from ....parsers.hlo.uses import call_sites
from ...ir.derived import derived
from ...ir.stage import ParsedStage

MAX_CALLS = 64
"""Calls inside each other that are followed."""

Path = tuple[int, ...]
"""Which element of a tuple, of a tuple in it, …"""

HANDED_ON = frozenset(("copy", "opt-barrier", "all-reduce-done", "all-gather-done", "async-update", "add-dependency"))
"""Opcodes whose result is their first operand, with the same tuples around it."""

BRANCHES = ("branch_computations", "true_computation", "false_computation")


@dataclass(frozen=True, slots=True, eq=False)
class HloValue:
    """One array: an element of an instruction's result, in a computation that was reached through some calls."""

    instruction: Instruction
    path: Path = ()
    calls: tuple[Instruction, ...] = ()
    _key: tuple[object, ...] = field(init=False, repr=False)
    """Made once, as values are looked up far more often than they are made."""

    def __post_init__(self) -> None:
        key = self.instruction.start, self.path, tuple([call.start for call in self.calls])
        object.__setattr__(self, "_key", key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloValue) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True, slots=True)
class HloUse:
    """An instruction that takes a value, which is an array, as its operand of that position."""

    value: HloValue
    instruction: Instruction
    position: int

    @property
    def result(self) -> HloValue:
        """What the instruction gives, where that is one array."""
        return HloValue(self.instruction, (), self.value.calls)


_Users = Mapping[tuple[str, int | None], list[tuple[Instruction, int]]]
"""Those that take an element of a tuple by its number, all others by None: a tuple may have thousands."""


class HloFlow:
    """Users of the instructions of a module, and the calls of its computations."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.used_whole: set[HloValue] = set()
        """Values that are known to go to where more than a block of them is used, found while others were followed."""
        self._users: dict[str, _Users] = {}
        self._sites = call_sites(module)

    def uses(self, value: HloValue) -> Iterator[HloUse | HloValue | None]:
        """Each use of a value; the value that it is elsewhere; None where it is a result of the whole program."""
        instruction = value.instruction
        used = self._used(instruction.computation)
        elements = used.get((instruction.name, value.path[0]), ()) if value.path else ()
        for user, position in (*used.get((instruction.name, None), ()), *elements):
            yield from self._used_by(value, user, position)
        if instruction is instruction.computation.root:
            yield from self._returned(value)

    def operand(self, value: HloValue, position: int) -> HloValue | None:
        """The array that an instruction takes as its operand of that position."""
        references = value.instruction.references
        if position >= len(references):
            return None
        made = value.instruction.computation.instruction(references[position].name)
        return None if made is None else HloValue(made, references[position].index, value.calls)

    def origin(self, value: HloValue) -> HloValue | None:
        """What a value is, behind tuples, calls and unchanged carries; itself where nothing is before it."""
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
                index, made = number(instruction.attributes.get("index")), self.operand(value, 0)
                return None if made is None or index is None else HloValue(made.instruction, (index, *path), made.calls)
            case "tuple" if path:
                made = self.operand(value, path[0])
                return None if made is None else HloValue(made.instruction, (*made.path, *path[1:]), made.calls)
            case "parameter":
                return self._argument(value)
            case "fusion" | "call":
                root = self._root(instruction, ("calls", "to_apply"))
                if root is None or len(value.calls) >= MAX_CALLS:
                    return None
                return HloValue(root, path, (*value.calls, instruction))
            case "while":
                return self._carried(instruction, path, value.calls)
            case opcode if opcode in HANDED_ON and opcode not in ("all-reduce-done", "all-gather-done"):
                made = self.operand(value, 0)
                return None if made is None else HloValue(made.instruction, path, made.calls)
            case "copy-done":
                made = self.operand(value, 0)
                return None if made is None or made.instruction.opcode != "copy-start" else self.operand(made, 0)
        return value

    def _argument(self, value: HloValue) -> HloValue | None:
        instruction = value.instruction
        position = number(instruction.literal)
        callers = value.calls[-1:] or self._callers(instruction.computation.name)
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
        """What a loop begins with, where it goes on with the same."""
        root = self._root(loop, ("body",))
        if root is None or not path or root.opcode != "tuple":
            return None
        result = self.operand(HloValue(root, path, (*calls, loop)), path[0])
        while result is not None and result.instruction.opcode in ("copy", "get-tuple-element"):
            if result.instruction.opcode == "get-tuple-element":
                index, made = number(result.instruction.attributes.get("index")), self.operand(result, 0)
                if made is None or made.instruction.opcode != "parameter" or index != path[0] or len(path) != 1:
                    return None
                begin = self.operand(HloValue(loop, (), calls), 0)
                return None if begin is None else HloValue(begin.instruction, (*begin.path, *path), begin.calls)
            result = self.operand(result, 0)
        return None

    def _root(self, instruction: Instruction, keys: tuple[str, ...]) -> Instruction | None:
        names = [name for key in keys for name in instruction.callees.get(key, ())]
        computation = self.module.computation(names[0]) if len(names) == 1 else None
        return None if computation is None else computation.root

    def _used(self, computation: Computation) -> _Users:
        if computation.name not in self._users:
            found: dict[tuple[str, int | None], list[tuple[Instruction, int]]] = {}
            for instruction in computation.instructions:
                for position, operand in enumerate(instruction.references):
                    is_element = instruction.opcode == "get-tuple-element" and not operand.index
                    element = number(instruction.attributes.get("index")) if is_element else None
                    found.setdefault((operand.name, element), []).append((instruction, position))
            self._users[computation.name] = found
        return self._users[computation.name]

    def _callers(self, name: str) -> tuple[Instruction, ...]:
        found = (self.module.instruction_at(site.offset) for site in self._sites.get(name, ()))
        return tuple(each for each in found if each is not None)

    def _used_by(self, value: HloValue, user: Instruction, position: int) -> Iterator[HloUse | HloValue | None]:
        index, path = user.references[position].index, value.path
        if index != path[: len(index)]:
            return
        path, calls = path[len(index) :], value.calls
        match user.opcode:
            case "tuple":
                yield HloValue(user, (position, *path), calls)
            case "get-tuple-element":
                if path and path[0] == number(user.attributes.get("index")):
                    yield HloValue(user, path[1:], calls)
            case "copy-start":
                yield HloValue(user, (0,), calls)
            case "copy-done":
                if path[:1] == (0,):
                    yield HloValue(user, (), calls)
            case opcode if opcode in HANDED_ON and position == 0:
                yield HloValue(user, path, calls)
            case "async-done":
                yield HloValue(user, path, calls)
            case "fusion" | "call" | "while" | "conditional" | "async-start":
                yield from self._inside(HloValue(value.instruction, path, calls), user, position)
            case _:
                yield None if path else HloUse(value, user, position)

    def _inside(self, value: HloValue, call: Instruction, position: int) -> Iterator[HloValue | None]:
        keys = {
            "while": ("body", "condition"),
            "conditional": BRANCHES,
        }.get(call.opcode, ("calls", "to_apply", "called_computations"))
        names = [name for key in keys for name in call.callees.get(key, ())]
        if call.opcode == "conditional":
            names, position = names[position - 1 : position] if position else [], 0
        if not names or len(value.calls) >= MAX_CALLS:
            yield None
        for name in names:
            computation = self.module.computation(name)
            parameters = () if computation is None else computation.parameters
            if position >= len(parameters):
                yield None
            else:
                yield HloValue(parameters[position], value.path, (*value.calls, call))

    def _returned(self, value: HloValue) -> Iterator[HloValue | None]:
        computation = value.instruction.computation
        calls = value.calls[-1:] or self._callers(computation.name)
        if not calls:
            yield None
        for call in calls:
            if computation.name in call.callees.get("condition", ()):
                yield None  # it decides how often a loop runs
            elif computation.name in call.callees.get("body", ()):
                around = value.calls or (call,)
                yield HloValue(call, value.path, around[:-1])
                yield from (
                    HloValue(parameter, value.path, around)
                    for name in (*call.callees.get("body", ()), *call.callees.get("condition", ()))
                    for body in (self.module.computation(name),)
                    for parameter in (() if body is None else body.parameters[:1])
                )
            else:
                yield HloValue(call, value.path, value.calls[:-1])


@derived
def hlo_flow(stage: ParsedStage) -> HloFlow | None:
    """The flow of a stage's HLO; None where it has none."""
    return None if stage.hlo is None else HloFlow(stage.hlo)
