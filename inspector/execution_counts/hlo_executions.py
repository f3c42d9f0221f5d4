"""Executions of each computation of an HLO module: the calls that lead to it, times the trip counts on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.graph import BRANCHES
from ..dataflow.meaning import Does, does
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from .execution import ONCE, UNKNOWN, Execution, callers_first
from .hlo_trip_count import trip_count

Calls = dict[str, dict[Instruction, list[tuple[str, str]]]]
"""The instructions that call others, by the computation that they are in, with attributes and names of these."""


class HloExecutions:
    """The call graph of a module, looked at from below: only what leads to a requested computation is read."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self._known: dict[str, Execution] = {}

    def of(self, computation: str) -> Execution:
        """Return how often a computation runs. Calls in a cycle, which only a broken text has, count as unknown."""
        entry = self.module.entry
        if entry is not None and computation == entry.name:
            return ONCE
        for name in callers_first(computation, self._known, self._names_of_callers):
            self._known[name] = ONCE if entry is not None and name == entry.name else self._sum(name)
        return self._known[computation]

    def most_of(self, amounts: Mapping[str, int]) -> int | None:
        """The most that one run adds up of an amount per execution of some computations: of branches, one is taken.

        None where a loop has no known bound.
        """
        entry, calls = self.module.entry, self._leading_to(amounts)
        most: dict[str, int | None] = {}
        waiting = [] if entry is None else [entry.name]
        while waiting:
            name = waiting[-1]
            inside = [each for called in calls.get(name, {}).values() for _, each in called]
            unknown = [each for each in inside if each not in most]
            if name in most or not unknown:
                waiting.pop()
                most.setdefault(name, self._most_in(amounts.get(name, 0), calls.get(name, {}), most))
            elif len(waiting) > len(calls) + len(amounts) + 1:
                return None  # calls in a cycle
            else:
                waiting.append(unknown[0])
        return 0 if entry is None else most[entry.name]

    def _leading_to(self, computations: Iterable[str]) -> Calls:
        found: Calls = {}
        waiting = list(computations)
        seen = set(waiting)
        while waiting:
            name = waiting.pop()
            for attribute, caller in self._callers(name):
                around = caller.computation.name
                found.setdefault(around, {}).setdefault(caller, []).append((attribute, name))
                if around not in seen:
                    seen.add(around)
                    waiting.append(around)
        return found

    def _most_in(
        self, own: int, calls: Mapping[Instruction, Sequence[tuple[str, str]]], most: Mapping[str, int | None]
    ) -> int | None:
        total = own
        for caller, called in calls.items():
            taken = []
            for attribute, name in called:
                amount, factor = most[name], self._factor(attribute, caller)[1]
                if amount is None or (factor is None and amount):
                    return None
                taken.append(amount * (factor or 0))
            total += max(taken) if caller.opcode == "conditional" else sum(taken)
        return total

    def _sum(self, computation: str) -> Execution:
        total: int | None = 0
        most: int | None = 0
        loops: tuple[str, ...] | None = None
        for attribute, caller in self._callers(computation):
            outer = self._known.get(caller.computation.name, UNKNOWN)
            factor, bound = self._factor(attribute, caller)
            total = _plus(total, outer.count, factor)
            most = _plus(most, outer.most, bound)
            if loops is None:
                loops = (*outer.loops, caller.name) if caller.opcode == "while" else outer.loops
        return Execution(total, loops or (), most)

    def _names_of_callers(self, computation: str) -> list[str]:
        return [caller.computation.name for _, caller in self._callers(computation)]

    def _callers(self, computation: str) -> Iterator[tuple[str, Instruction]]:
        for attribute, caller in self.module.graph.callers(computation):
            # Nothing in a computation that is applied to elements, as in a sum, is an instruction of the program.
            if does(caller.opcode) in Does.CALL | Does.BRANCH | Does.FORWARD or caller.opcode == "custom-call":
                yield attribute, caller

    def _factor(self, attribute: str, caller: Instruction) -> tuple[int | None, int | None]:
        """Return how often one run of the caller runs the computation that this attribute names, and at most."""
        if attribute in BRANCHES:
            return None, 1
        if caller.opcode != "while":
            return 1, 1
        trips = trip_count(caller, self.module)
        trips = trips if trips is None or attribute == "body" else trips + 1
        return trips, trips


def _plus(total: int | None, count: int | None, factor: int | None) -> int | None:
    return None if total is None or count is None or factor is None else total + count * factor


@derived
def hlo_executions(stage: ParsedStage) -> HloExecutions | None:
    """The executions in a stage's HLO; None where it has none."""
    return None if stage.hlo is None else HloExecutions(stage.hlo)
