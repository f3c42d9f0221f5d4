"""Pairs of operations of two modules that are the same program before and after a part of Shardy.

XLA dumps Shardy's modules without locations. The HLO behind Shardy has them, and is the same graph but for what hands
values on: constraints and reshards, edges of shard_maps, tuples, and what loops carry unchanged. So both are walked
from their results, and what hands on is skipped. Dead code is never met; copies of an operation share its pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from . import modules

Operation = Any

CONSTRAINTS = frozenset({"sdy.sharding_constraint", "sdy.reshard", "@Sharding", "mhlo.copy"})
ENTRIES = frozenset({"@SPMDFullToShardShape", "@xla.sdy.GlobalToLocalShape"})
EXITS = frozenset({"@SPMDShardToFullShape", "@xla.sdy.LocalToGlobalShape"})
"""Custom calls at the edges of a shard_map, which Shardy has an operation with a region for.

A copy goes before each, and has its location.
"""

MANUAL, LOOP, TUPLE, ELEMENT, RESHAPE = (
    "sdy.manual_computation",
    "stablehlo.while",
    "stablehlo.tuple",
    "stablehlo.get_tuple_element",
    "stablehlo.reshape",
)

CONSTANTS = frozenset({"sdy.constant", "stablehlo.constant"})


def pairs(module: ir.Module, other: ir.Module) -> dict[Operation, Operation]:
    """The operations of a module with those of another one, in which calls are inlined. Constants are in no pair."""
    modules.inline_calls(other)
    found: dict[Operation, Operation] = {}
    waiting = [tuple(_terminator(modules.main_of(each).regions[0]) for each in (module, other))]
    while waiting:
        one, another = waiting.pop()
        for values in zip(_operands(one), _operands(another), strict=False):
            mine, theirs = map(_maker, values)
            for passed, others in zip(mine.passed_on, theirs.passed_on, strict=True):
                # What only one side has was added where the value is used.
                for pair in zip(reversed(passed), reversed(others), strict=False):
                    found.setdefault(*pair)
            if mine.operation is None or theirs.operation is None or mine.operation in found:
                continue
            if _name(mine.operation) != _name(theirs.operation) or _name(mine.operation) in CONSTANTS:
                continue
            found[mine.operation] = theirs.operation
            waiting.append((mine.operation, theirs.operation))
            regions = zip(mine.operation.regions, theirs.operation.regions, strict=False)
            waiting += [tuple(map(_terminator, pair)) for pair in regions if all(len(each.blocks) for each in pair)]
    return found


class _Maker(NamedTuple):
    """The operation that makes a value, None for an argument; and the constraints and shard_maps that hand it on."""

    operation: Operation | None
    passed_on: tuple[list[Operation], list[Operation]]


def _maker(value: Any) -> _Maker:
    constraints: list[Operation] = []
    exits: list[Operation] = []
    is_edge = False
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            holder, number = owner.owner.operation, ir.BlockArgument(value).arg_number
            if holder.name != MANUAL and not _is_carried(holder, number):
                return _Maker(None, (constraints, exits))
            value = holder.operands[number]
            continue
        operation, number = owner.operation, ir.OpResult(value).result_number
        if operation.name == ELEMENT:
            made = operation.operands[0].owner
            inner = made.operation if not isinstance(made, ir.Block) else None
            if inner is None or inner.name != TUPLE:
                return _Maker(inner, (constraints, exits))
            operation, number = inner, ir.IntegerAttr(operation.attributes["index"]).value
        name = _name(operation)
        if name == MANUAL:
            exits.append(operation)
            value = _terminator(operation.regions[0]).operands[number]
            continue
        if name in EXITS:
            exits.append(operation)
        elif name in CONSTRAINTS and not is_edge:
            constraints.append(operation)
        elif name not in ENTRIES | CONSTRAINTS | {TUPLE} and not _hands_on(operation, number):
            return _Maker(operation, (constraints, exits))
        is_edge = name in ENTRIES | EXITS
        value = operation.operands[number]


def _operands(operation: Operation) -> Iterator[Any]:
    """The operands; those of a tuple instead of it."""
    for value in operation.operands:
        owner = value.owner
        is_tuple = not isinstance(owner, ir.Block) and owner.operation.name == TUPLE
        yield from owner.operation.operands if is_tuple else (value,)


def _terminator(region: Any) -> Operation:
    return list(region.blocks[0].operations)[-1].operation


def _name(operation: Operation) -> str:
    """The name, of a custom call that of its target."""
    if operation.name == "stablehlo.custom_call":
        return f"@{ir.StringAttr(operation.attributes['call_target_name']).value}"
    return str(operation.name)


def _hands_on(operation: Operation, number: int) -> bool:
    """Return whether a loop passes on its value of this number unchanged, or a reshape has another layout alone."""
    is_same = operation.name == RESHAPE and operation.operands[0].type == operation.results[0].type
    return is_same or _is_carried(operation, number)


def _is_carried(operation: Operation, number: int) -> bool:
    if operation.name != LOOP:
        return False
    body = operation.regions[1].blocks[0]
    return bool(_terminator(operation.regions[1]).operands[number] == body.arguments[number])
