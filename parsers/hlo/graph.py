"""Users and operands of instructions, and callers of computations: one index for all walks over a module.

A computation is looked through once, when one of its instructions is first asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from .call_sites import CallSite, call_sites
from .computation import Computation
from .fields import number
from .instruction import Instruction

if TYPE_CHECKING:
    from .module import HloModule

Taken = tuple[Instruction | None, tuple[int, ...]]
"""An operand: the instruction that defines it, and the element of its result; None for one not in the text."""

Use = tuple[Instruction, int, tuple[int, ...]]
"""An instruction, the position of an operand of it, and the element that it takes there, () for all of a result."""

Users = tuple[Sequence[Use], Mapping[int | None, Sequence[Instruction]]]
"""Users of a result, and its get-tuple-elements by their number: a tuple may have thousands."""

NOWHERE: Users = ((), {})

BRANCHES = ("branch_computations", "true_computation", "false_computation")
"""The attributes that name the computations of a conditional, in the order of the operands that they take."""

ENTERED = {"while": ("body", "condition"), "conditional": BRANCHES}
"""The attributes that name computations whose parameters are operands of an instruction."""

APPLIED = ("calls", "to_apply", "called_computations")
"""The same of every other opcode that calls a computation with its own operands."""


class Graph:
    """Operands and users of the instructions of a module, and the calls of its computations."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self._operands: dict[Instruction, tuple[Taken, ...]] = {}
        self._users: dict[Computation, Mapping[Instruction, Users]] = {}
        self._callees: dict[Instruction, Mapping[str, tuple[str, ...]]] = {}
        self._callers: dict[str, tuple[tuple[str, Instruction], ...]] = {}

    def operands(self, instruction: Instruction) -> tuple[Taken, ...]:
        """Return the operands of an instruction, by position."""
        found = self._operands.get(instruction)
        if found is None:
            of = instruction.computation.instruction
            names = instruction.plain_operands
            if names is None:
                found = tuple((of(each.name), each.index) for each in instruction.references)
            else:
                found = tuple([(of(name), ()) for name in names])
            self._operands[instruction] = found
        return found

    def users(self, instruction: Instruction) -> Users:
        """Return the users of a result or an element of it, in text order."""
        computation = instruction.computation
        if computation not in self._users:
            self._users[computation] = self._users_in(computation)
        known = self._users[computation]
        if instruction in known:
            return known[instruction]
        # Searches in the text, as `with_opcode`, make other objects of it than its computation has.
        own = computation.instruction_at(instruction.start)
        return NOWHERE if own is None else known.get(own, NOWHERE)

    def takers(self, instruction: Instruction) -> tuple[Instruction, ...]:
        """Return the instructions that take a result or an element of it, each once, in text order."""
        users, elements = self.users(instruction)
        found = [user for user, *_ in users]
        if elements:
            found = sorted((*found, *chain.from_iterable(elements.values())), key=attrgetter("start"))
        return tuple(dict.fromkeys(found))

    def callees(self, instruction: Instruction) -> Mapping[str, tuple[str, ...]]:
        """The names of the computations that an instruction calls, by attribute."""
        if instruction not in self._callees:
            self._callees[instruction] = instruction.callees
        return self._callees[instruction]

    def called(self, instruction: Instruction, *attributes: str) -> Computation | None:
        """The computation that some attributes name, where they name one and no other."""
        names = self._named(instruction, attributes)
        return self.module.computation(names[0]) if len(names) == 1 else None

    def entered(self, call: Instruction, position: int) -> list[Instruction | None]:
        """The parameters that an operand is in the computations that it is handed to; None for one not in the text."""
        names = self._named(call, ENTERED.get(call.opcode, APPLIED))
        if call.opcode == "conditional":
            names, position = names[position - 1 : position] if position else [], 0
        bodies = [self.module.computation(name) for name in names]
        return [
            None if body is None or position >= len(body.parameters) else body.parameters[position] for body in bodies
        ]

    def handed(self, call: Instruction, parameter: Instruction) -> int | None:
        """The position of the operand that a parameter is in a computation that an instruction calls: see `entered`."""
        index, name = number(parameter.literal), parameter.computation.name
        if call.opcode != "conditional":
            return index
        names = self._named(call, BRANCHES)
        return names.index(name) + 1 if index == 0 and names.count(name) == 1 else None

    def branches(self, conditional: Instruction) -> list[Computation]:
        """The computations of a conditional, without those that are not in the text."""
        bodies = map(self.module.computation, self._named(conditional, BRANCHES))
        return [body for body in bodies if body is not None]

    def _named(self, call: Instruction, attributes: Iterable[str]) -> list[str]:
        """The names of the computations that some attributes of an instruction name, in their order."""
        callees = self.callees(call)
        return [name for key in attributes for name in callees.get(key, ())]

    def callers(self, computation: str) -> tuple[tuple[str, Instruction], ...]:
        """The instructions that call a computation, each with the attribute that names it, in text order."""
        if computation not in self._callers:
            sites = self._sites.get(computation, ())
            found = ((site.attribute, self.module.instruction_at(site.offset)) for site in sites)
            self._callers[computation] = tuple((key, caller) for key, caller in found if caller is not None)
        return self._callers[computation]

    def _users_in(self, computation: Computation) -> Mapping[Instruction, Users]:
        found: dict[Instruction, tuple[list[Use], dict[int | None, list[Instruction]]]] = {}
        for instruction in computation.instructions:
            is_element = instruction.opcode == "get-tuple-element"
            for position, (maker, index) in enumerate(self.operands(instruction)):
                if maker is None:
                    continue
                users = found.get(maker)
                if users is None:
                    users = found[maker] = ([], {})
                if is_element and not index:
                    users[1].setdefault(instruction.element, []).append(instruction)
                else:
                    users[0].append((instruction, position, index))
        return found

    @cached_property
    def _sites(self) -> dict[str, tuple[CallSite, ...]]:
        return dict(call_sites(self.module))


class Uses:
    """The operands of a computation, by name."""

    def __init__(self, computation: Computation) -> None:
        self._computation = computation

    def definition(self, name: str) -> Instruction | None:
        """The instruction of that name."""
        return self._computation.instruction(name)

    def operands(self, instruction: Instruction) -> tuple[str, ...]:
        """The names of what an instruction takes."""
        return instruction.operands

    def results(self, instruction: Instruction) -> tuple[str]:
        """Its name, which stands for its result."""
        return (instruction.name,)

    def users_of(self, names: Collection[str]) -> Mapping[str, tuple[Instruction, ...]]:
        """For each name of an instruction of this computation those with it as an operand, in text order."""
        made = {name: self._computation.instruction(name) for name in names}
        graph = self._computation.module.graph
        return {name: () if each is None else graph.takers(each) for name, each in made.items()}
