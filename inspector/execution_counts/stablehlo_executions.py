"""Executions of each operation of a StableHLO module: the regions and calls around it, times their trip counts."""

from __future__ import annotations

import re
from functools import cached_property

from ...parsers.errors import ParseError, readable
from ...parsers.mlir import Block, MlirModule, Operation, function_around
from ..catalog.spellings import MLIR_CALLS
from ..dataflow.meaning import Does, does
from ..units import known_sum
from .execution import MIRRORED, ONCE, UNKNOWN, Execution, callers_first, count

WHILE = "stablehlo.while"
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
            elif does(outer.name) is Does.BRANCH:
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
        for call in self._module.operations(MLIR_CALLS):
            calls.setdefault(_callee(call), []).append(call)
        return calls


def _callee(call: Operation) -> str:
    attributes = readable(lambda: call.attributes) or {}
    return attributes.get("callee", "").lstrip("@").strip('"')


_SCALAR = re.compile(r"dense<(-?\d{1,19})>")


class TripCounts:
    """The loops of one module. The constants of a block are read once: many loops may begin in it."""

    def __init__(self) -> None:
        self._of_blocks: dict[int, dict[str, int]] = {}
        self._around: dict[tuple[str, int], int | None] = {}

    def of(self, loop: Operation) -> int | None:
        """Return how often the body of a while runs; None where the text does not determine it."""
        try:
            return self._count(loop)
        except ParseError:
            return None

    def _count(self, loop: Operation) -> int | None:
        blocks = [region.blocks for region in loop.regions]
        if len(blocks) != 2 or not all(blocks):
            return None
        (condition, *_), (body, *_) = blocks
        tests = [operation for operation in condition.operations if operation.name == "stablehlo.compare"]
        *_, end = condition.operations or (None,)
        test = next((each for each in tests if end is not None and each.results == end.operands), None)
        if test is None or len(test.operands) != 2:
            return None
        direction = test.attributes.get("comparison_direction", "").strip("#<>").split()[-1:] or [""]
        carried = [argument.name for argument in condition.arguments]
        left, right = test.operands
        compared = direction[0]
        if right in carried:
            left, right, compared = right, left, MIRRORED.get(compared, "")
        bound = _constant(right, condition.operations) if left in carried else None
        if bound is None:
            bound = self._constant_around(right, loop) if left in carried else None
        if bound is None:
            return None
        index = carried.index(left)
        start = self._constant_around(loop.operands[index], loop) if index < len(loop.operands) else None
        step = _step(body.arguments[index].name, index, body.operations) if index < len(body.arguments) else None
        return None if start is None or step is None else count(start, step, compared, bound)

    def _constant_around(self, name: str, operation: Operation) -> int | None:
        passed, number = [], None
        inner, outer = operation, operation.parent
        while outer is not None:
            passed.append((name, inner.span.start))
            if passed[-1] in self._around:
                number = self._around[passed[-1]]
                break
            blocks = (block for region in outer.regions for block in region.blocks)
            around = next((block for block in blocks if block.holds(inner)), None)
            number = None if around is None else self._constants(around).get(name)
            if number is not None or outer.name == "func.func":
                break
            inner, outer = outer, outer.parent
        self._around |= dict.fromkeys(passed, number)
        return number

    def _constants(self, block: Block) -> dict[str, int]:
        if block.start not in self._of_blocks:
            found = ((each, _integer(each)) for each in block.operations if each.name == "stablehlo.constant")
            self._of_blocks[block.start] = {
                name: number for each, number in found if number is not None for name in each.results
            }
        return self._of_blocks[block.start]


def _step(argument: str, index: int, operations: tuple[Operation, ...]) -> int | None:
    if not operations or index >= len(operations[-1].operands):
        return None
    result = operations[-1].operands[index]
    added = next((each for each in operations if result in each.results), None)
    if added is None or does(added.name) is not Does.ADD or argument not in added.operands:
        return None
    sign = 1 if added.name == "stablehlo.add" else -1
    if sign < 0 and added.operands[0] != argument:
        return None
    other = next((name for name in added.operands if name != argument), "")
    number = _constant(other, operations)
    return None if number is None else sign * number


def _constant(name: str, operations: tuple[Operation, ...]) -> int | None:
    defined = next((operation for operation in operations if name in operation.results), None)
    return None if defined is None or defined.name != "stablehlo.constant" else _integer(defined)


def _integer(constant: Operation) -> int | None:
    attributes = readable(lambda: constant.attributes) or {}
    scalar = _SCALAR.match(attributes.get("value", ""))
    return None if scalar is None else int(scalar[1])
