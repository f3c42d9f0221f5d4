"""Executions of each computation of an HLO module: the calls that lead to it, times the trip counts on the way."""

from __future__ import annotations

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.graph import BRANCHES
from ..catalog.spellings import HLO_OPCODES, KIND_OF
from .execution import Execution
from .hlo_trip_count import trip_count

REDUCERS = frozenset(("reduce", "reduce-window", "scatter", "select-and-scatter", "sort", "map")) | frozenset(
    opcode for opcode, kind in HLO_OPCODES.items() if KIND_OF[kind].reduces
)
"""Opcodes whose computation is applied to elements: nothing in it is an instruction of the program."""


class HloExecutions:
    """The call graph of a module, looked at from below: only what leads to a requested computation is read."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self._known: dict[str, Execution] = {}

    def of(self, computation: str) -> Execution:
        """Return how often a computation runs. Calls in a cycle, which only a broken text has, count as unknown."""
        entry = self.module.entry
        if entry is not None and computation == entry.name:
            return Execution(1)
        if computation not in self._known:
            self._known[computation] = Execution(None)
            self._known[computation] = self._sum(computation)
        return self._known[computation]

    def _sum(self, computation: str) -> Execution:
        total: int | None = 0
        loops: tuple[str, ...] | None = None
        for attribute, caller in self.module.graph.callers(computation):
            if caller.opcode.removesuffix("-start") in REDUCERS:
                continue
            outer = self.of(caller.computation.name)
            factor = self._factor(attribute, caller)
            count = None if outer.count is None or factor is None else outer.count * factor
            total = None if total is None or count is None else total + count
            if loops is None:
                loops = (*outer.loops, caller.name) if caller.opcode == "while" else outer.loops
        return Execution(total, loops or ())

    def _factor(self, attribute: str, caller: Instruction) -> int | None:
        """Return how often one run of the caller runs the computation that this attribute names."""
        if attribute in BRANCHES:
            return None
        if caller.opcode != "while":
            return 1
        trips = trip_count(caller, self.module)
        return trips if trips is None or attribute == "body" else trips + 1
