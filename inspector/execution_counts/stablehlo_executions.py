"""Executions of each operation of a StableHLO module: the regions and calls around it, times their trip counts."""

from __future__ import annotations

from functools import cached_property

from ...parsers.errors import readable
from ...parsers.mlir import MlirModule, Operation, function_around
from ..units import known_sum
from .execution import ONCE, UNKNOWN, Execution, callers_first
from .stablehlo_trip_count import TripCounts

WHILE = "stablehlo.while"
BRANCHES = frozenset({"stablehlo.case", "stablehlo.if"})
CALLS = ("call", "func.call")
ENTRY = "main"


class StablehloExecutions:
    """The regions and calls of a module, looked at from below: only what leads to an operation is read."""

    def __init__(self, module: MlirModule) -> None:
        self._module = module
        self._trip_counts = TripCounts()
        self._known: dict[str, Execution] = {}

    def of(self, operation: Operation) -> Execution:
        """Return how often an operation runs. Calls in a cycle, which only a broken text has, count as unknown."""
        total: int | None = 1
        most: int | None = 1
        loops: list[str] = []
        inner, outer = operation, operation.parent
        while outer is not None and outer.name != "func.func":
            if outer.name == WHILE:
                trips = self._trip_counts.of(outer)
                total = None if total is None or trips is None else total * trips
                most = None if most is None or trips is None else most * trips
                loops.append(outer.results[0] if outer.results else outer.name)
            elif outer.name in BRANCHES:
                total = None
            inner, outer = outer, outer.parent
        function = function_around(inner)
        around = ONCE if function is None else self._of_function(function.name)
        count = None if total is None or around.count is None else total * around.count
        bound = None if most is None or around.most is None else most * around.most
        return Execution(count, (*around.loops, *reversed(loops)), bound)

    def _of_function(self, name: str) -> Execution:
        found = [*callers_first(name, self._known, self._functions_around_calls)]
        self._known |= dict.fromkeys(found, UNKNOWN)
        for each in found:
            self._known[each] = self._sum(each)
        return self._known[name]

    def _sum(self, name: str) -> Execution:
        if name == ENTRY or name not in self._calls:
            return ONCE
        calls = [self.of(call) for call in self._calls[name]]
        total, most = (known_sum(each) for each in zip(*((call.count, call.most) for call in calls), strict=True))
        return Execution(total, calls[0].loops, most)

    def _functions_around_calls(self, name: str) -> list[str]:
        around = map(function_around, self._calls.get(name, ()) if name != ENTRY else ())
        return [function.name for function in around if function is not None]

    @cached_property
    def _calls(self) -> dict[str, list[Operation]]:
        calls: dict[str, list[Operation]] = {}
        for call in self._module.operations(CALLS):
            calls.setdefault(_callee(call), []).append(call)
        return calls


def _callee(call: Operation) -> str:
    attributes = readable(lambda: call.attributes) or {}
    return attributes.get("callee", "").lstrip("@").strip('"')
