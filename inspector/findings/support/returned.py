"""Sums over devices that a program returns whole, where an argument of the same path and type is sharded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....parsers.hlo import HloModule
from ....parsers.record import Record
from ...ir.array_sharding import ArraySharding
from ...ir.types import ArrayType
from ...report import Collective, Report, ShardedValue
from .compiled import in_hlo

HANDED_ON = frozenset(("copy", "bitcast", "transpose", "convert", "get-tuple-element", "all-reduce-done"))
"""Opcodes between a sum and the result that it becomes."""

MAX_HANDED_ON = 8


class ReturnedSum(Record, frozen=True):
    """A result that an all-reduce gives to all devices whole, and the argument that is sharded over its axes."""

    collective: Collective
    output: ShardedValue
    argument: ShardedValue
    sharding: ArraySharding
    """The argument's."""


def returned_sums(report: Report) -> Iterator[ReturnedSum]:
    """Yield the results of the compiled program that are an all-reduce over axes that shard their argument."""
    stage = report.program.stage("hlo")
    module = None if stage is None else stage.hlo
    sums = {each.name: each for each in in_hlo(report, "all-reduce")}
    outputs = [value for value in report.shardings if value.role == "output"]
    makers = [] if module is None or not sums else list(_makers(module, len(outputs)))
    arguments = _by_leaf(report)
    for output, name in zip(outputs, makers, strict=True) if len(outputs) == len(makers) else ():
        collective, alike = sums.get(name), _alike(arguments, output)
        sharding = alike[0].sharding if len(alike) == 1 else None
        if collective is None or output.sharding is None or sharding is None:
            continue
        summed = set(collective.axes or ())
        if summed and summed.issubset(sharding.sharded) and summed.isdisjoint(output.sharding.sharded):
            yield ReturnedSum(collective, output, alike[0], sharding)


def _by_leaf(report: Report) -> Mapping[tuple[ArrayType, str], list[ShardedValue]]:
    found: dict[tuple[ArrayType, str], list[ShardedValue]] = {}
    for value in report.shardings:
        if value.role == "argument":
            found.setdefault((value.type, value.leaf), []).append(value)
    return found


def _alike(arguments: Mapping[tuple[ArrayType, str], list[ShardedValue]], output: ShardedValue) -> list[ShardedValue]:
    """Return the arguments of a result's type with the longest path that its own ends with."""
    leaf = output.leaf
    ends = (*(leaf[at:] for at, character in enumerate(leaf) if character == "["), "")
    return next((found for end in ends if (found := arguments.get((output.type, end)))), [])


def _makers(module: HloModule, count: int) -> Iterator[str]:
    """Yield the instruction that each of so many results of the entry comes from."""
    entry = module.entry
    if entry is None or (root := entry.root) is None:
        return
    for name in root.operands if root.opcode == "tuple" else (root.name,) * count:
        for _ in range(MAX_HANDED_ON):
            instruction = entry.instruction(name)
            if instruction is None or instruction.opcode not in HANDED_ON or not instruction.operands:
                break
            name = instruction.operands[0]
        yield name
