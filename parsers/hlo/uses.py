"""Users of some instructions, found by one scan over a computation."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ..expressions import compiled
from ..record import Record
from ..source import name_set
from .call import CALLING
from .computation import Computation
from .instruction import Instruction
from .patterns import NAME

if TYPE_CHECKING:
    from .module import HloModule

_OPERAND = compiled(rf"(?:[(,] ?|[\]}})/] ?)%({NAME})(?=[,)#])".encode(), re.ASCII)


class Uses:
    """The operands of a computation, by name; its text is looked through once, on first use."""

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

    def users_of(self, names: str | Collection[str]) -> Mapping[str, tuple[Instruction, ...]]:
        """For each name of an instruction of this computation those with it as an operand, in text order."""
        found: dict[str, list[Instruction]] = {name: [] for name in name_set(names)}
        instructions = self._computation.instructions
        if not self._has_percent_signs or not self._computation.is_exact:
            for instruction in instructions:
                for name in found.keys() & set(instruction.operands):
                    found[name].append(instruction)
        elif instructions:
            wanted = {name.encode(): users for name, users in found.items()}
            written, places = self._operands
            for number in (number for number, name in enumerate(written) if name in wanted):
                user = instructions[bisect_right(self._starts, places[number]) - 1]
                users = wanted[written[number]]
                if not users or users[-1] is not user:
                    users.append(user)
        return {name: tuple(users) for name, users in found.items()}

    @property
    def _has_percent_signs(self) -> bool:
        """True if names have percent signs, by which a pattern recognizes them."""
        instructions = self._computation.instructions
        return bool(instructions) and instructions[-1].text.removeprefix("ROOT ").startswith("%")

    @cached_property
    def _starts(self) -> list[int]:
        return [instruction.span.start for instruction in self._computation.instructions]

    @cached_property
    def _operands(self) -> tuple[list[bytes], array[int]]:
        """All that is written like an operand, and where."""
        written: list[bytes] = []
        places = array("Q")
        computation = self._computation
        for operand in _OPERAND.finditer(computation.module.source.data, self._starts[0], computation.span.end):
            written.append(operand[1])
            places.append(operand.start())
        return written, places


class CallSite(Record, frozen=True):
    """A place that names a computation: the attribute that does, and an offset inside the calling instruction."""

    attribute: str
    offset: int


_ATTRIBUTES = "|".join(CALLING)
_SITE = compiled(rf", ({_ATTRIBUTES})=(?:%?({NAME})|\{{([^{{}}]*+)\}})".encode(), re.ASCII)
_NAME = compiled(NAME.encode(), re.ASCII)


def call_sites(module: HloModule) -> Mapping[str, tuple[CallSite, ...]]:
    """The sites of all calls by the name of the computation that is called, in text order."""
    found: dict[str, list[CallSite]] = {}
    for callee, site in _sites(module):
        found.setdefault(callee, []).append(site)
    return {callee: tuple(sites) for callee, sites in found.items()}


def _sites(module: HloModule) -> Iterator[tuple[str, CallSite]]:
    if all(computation.is_printed for computation in module.computations) and not module.doubtful_lines:
        for match in _SITE.finditer(module.source.data):
            names = [match[2]] if match[2] is not None else _NAME.findall(match[3])
            for name in names:
                yield name.decode(), CallSite(match[1].decode(), match.start())
        return
    for computation in module.computations:
        for instruction in computation.instructions:
            for attribute, callees in instruction.callees.items():
                for name in callees:
                    yield name, CallSite(attribute, instruction.span.start)
