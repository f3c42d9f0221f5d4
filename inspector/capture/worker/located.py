"""The operation of XLA's HLO that each operation of its Shardy module comes from.

XLA turns its HLO into StableHLO, imports Shardy's attributes, and propagates; what it dumps has no locations. The same
HLO, which is dumped too, has them when it is turned into StableHLO here. In between, the import has inlined calls, made
regions of shard_maps, left out what is dead and what loops carry unchanged, and added constraints. What is left keeps
its order: an operation comes from the next one of its name and types whose operands come from the same ones.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from jaxlib.mlir import ir

from . import modules

Operation = Any

CONSTANTS = frozenset({"sdy.constant", "stablehlo.constant"})
TERMINATORS = frozenset({"sdy.return", "stablehlo.return", "func.return"})
RENAMED = {
    "sdy.reshard": "sdy.sharding_constraint",
    "@Sharding": "sdy.sharding_constraint",
    "sdy.manual_computation": "@xla.sdy.LocalToGlobalShape",
}
PASSED_ON = frozenset(
    {"sdy.sharding_constraint", "@xla.sdy.GlobalToLocalShape", "@xla.sdy.LocalToGlobalShape", "stablehlo.tuple"}
)
"""Operations whose results are their operands under another sharding."""

VARYING = frozenset({"channel_handle", "result_layout", "xla_shape", "backend_config"})
"""Attributes that mean nothing here."""

MAX_TRIES = 100
"""Operations that are looked at for one."""


def sources(module: ir.Module, earlier: ir.Module) -> Mapping[Operation, Operation]:
    """The operations of a module with those of an earlier one; the calls of that are inlined in it."""
    modules.inline_calls(earlier)
    pairs: dict[Operation, Operation] = {}
    functions = [modules.main_of(each).regions[0].blocks[0] for each in (module, earlier)]
    _align(list(_flat(functions[0])), list(_flat(functions[1])), pairs)
    # What XLA takes out of a branch is in another block.
    used = set(pairs.values())
    moved = [each for each in modules.find(modules.main_of(module), lambda _: True) if each not in pairs]
    rest = [each for each in modules.find(modules.main_of(earlier), lambda _: True) if each not in used]
    _align(moved, rest, pairs)
    return pairs


def _flat(block: ir.Block) -> Iterator[Operation]:
    """The operations of a block, and of the shard_maps in it: those of HLO are inlined."""
    for view in block.operations:
        operation = view.operation
        if operation.name == "sdy.manual_computation":
            yield from _flat(operation.regions[0].blocks[0])
        yield operation


def _align(operations: list[Operation], earlier: list[Operation], pairs: dict[Operation, Operation]) -> None:
    places: dict[object, list[int]] = {}
    for place, operation in enumerate(earlier):
        if operation.name not in CONSTANTS:
            places.setdefault(_key(operation), []).append(place)
    used: set[int] = set()
    latest = -1
    for operation in operations:
        if operation.name in CONSTANTS or operation.name in TERMINATORS:
            continue
        shared = _constant(operation) is not None
        known = places.get(_key(operation), [])
        middle = bisect(known, latest)
        ordered = (known[i] for i in chain(range(middle, len(known)), range(middle - 1, -1, -1)))
        free = islice((p for p in ordered if shared or p not in used), MAX_TRIES)
        source = _best(operation, ((p, earlier[p]) for p in free), pairs)
        if source is None:
            continue
        used.add(source)
        latest = source
        pairs[operation] = earlier[source]
        if _name(operation) not in PASSED_ON:
            for region, other in zip(operation.regions, earlier[source].regions, strict=False):
                if len(region.blocks) and len(other.blocks):
                    _align(list(_flat(region.blocks[0])), list(_flat(other.blocks[0])), pairs)


def _best(
    operation: Operation, others: Iterable[tuple[int, Operation]], pairs: Mapping[Operation, Operation]
) -> int | None:
    """The first of the others that is a source; rather one with the same constants.

    Those are not always written alike: XLA spreads them, and makes one of several.
    """
    found = None
    for place, other in others:
        if _is_source(operation, other, pairs):
            if _has_constants_of(operation, other):
                return place
            found = place if found is None else found
    return found


def _key(operation: Operation) -> object:
    name = _name(operation)
    if name in PASSED_ON or name == "stablehlo.while" or name.startswith("@"):
        return name  # Operands and attributes are not what they were.
    own = modules.attributes_of(operation).items()
    meant = frozenset((key, attribute) for key, attribute in own if "." not in key and key not in VARYING)
    return name, tuple(result.type for result in operation.results), meant


def _name(operation: Operation) -> str:
    name: str = operation.name
    if name == "stablehlo.custom_call":
        name = f"@{ir.StringAttr(operation.attributes['call_target_name']).value}"
    return RENAMED.get(name, name)


def _is_source(operation: Operation, other: Operation, pairs: Mapping[Operation, Operation]) -> bool:
    """Return whether the operands of both come from the same operations."""
    found, wanted = ([_root(operand) for operand in _operands(each)] for each in (operation, other))
    if len(found) == len(wanted):
        return all(_agree(one, another, pairs) for one, another in zip(found, wanted, strict=True))
    return all(any(_agree(one, another, pairs) for another in wanted) for one in found)


def _has_constants_of(operation: Operation, other: Operation) -> bool:
    pairs = zip(_operands(operation), _operands(other), strict=False)
    values = (
        [_constant(root) if isinstance(root, ir.Operation) else None for root in map(_root, pair)] for pair in pairs
    )
    return all(one is None or (another is not None and one == another) for one, another in values)


def _operands(operation: Operation) -> list[Any]:
    if operation.name == "sdy.manual_computation":
        operation = list(operation.regions[0].blocks[0].operations)[-1]
    return list(operation.operands)


def _agree(one: object, other: object, pairs: Mapping[Operation, Operation]) -> bool:
    if isinstance(one, ir.Operation) and isinstance(other, ir.Operation):
        return _constant(one) is not None or pairs.get(one, other) == other
    return not isinstance(one, ir.Operation) and not isinstance(other, ir.Operation) and one == other


def _constant(operation: Operation) -> object:
    """The value of a constant, or of one that is spread; None for other operations."""
    if operation.name == "stablehlo.broadcast_in_dim":
        root = _root(operation.operands[0])
        return _constant(root) if isinstance(root, ir.Operation) and root.name in CONSTANTS else None
    if operation.name not in CONSTANTS:
        return None
    try:
        return operation.attributes["value"]
    except TypeError:  # the bindings have no complex ones
        return "complex"


def _root(value: Any) -> object:
    """The operation that makes a value, the number of the function's argument that it is, or None in a loop."""
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            holder, number = owner.owner, ir.BlockArgument(value).arg_number
            if modules.is_function(holder):
                return number
            if holder.name == "sdy.manual_computation" or _is_carried(holder, number):
                value = holder.operands[number]
                continue
            return None
        operation, number = owner.operation, ir.OpResult(value).result_number
        if operation.name == "stablehlo.get_tuple_element":
            number = ir.IntegerAttr(operation.attributes["index"]).value
            operation = operation.operands[0].owner.operation
        if operation.name == "sdy.manual_computation":
            value = _operands(operation)[number]
        elif _name(operation) in PASSED_ON or (operation.name == "stablehlo.while" and _is_carried(operation, number)):
            value = operation.operands[number]
        else:
            return operation


def _is_carried(loop: Operation, number: int) -> bool:
    """Return whether a loop passes the value of this number on unchanged."""
    if loop.name != "stablehlo.while":
        return False
    body = loop.regions[1].blocks[0]
    return bool(list(body.operations)[-1].operands[number] == body.arguments[number])
