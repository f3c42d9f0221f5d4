"""Roots of operands: the operations and arguments behind what only hands a value on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from jaxlib.mlir import ir

from . import modules

Operation = Any

CONSTANTS = frozenset({"sdy.constant", "stablehlo.constant"})
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


def key_of(operation: Operation) -> Hashable:
    """Return the name, the types and the attributes, by which an operation is known again."""
    name = name_of(operation)
    if name in PASSED_ON or name == "stablehlo.while" or name.startswith("@"):
        return name  # Operands and attributes are not what they were.
    own = modules.attributes_of(operation).items()
    meant = frozenset((key, attribute) for key, attribute in own if "." not in key and key not in VARYING)
    return name, tuple(result.type for result in operation.results), meant


def name_of(operation: Operation) -> str:
    """Return the name, of a custom call that of its target, as it was before XLA's import renamed it."""
    name: str = operation.name
    if name == "stablehlo.custom_call":
        name = f"@{ir.StringAttr(operation.attributes['call_target_name']).value}"
    return RENAMED.get(name, name)


def operands_of(operation: Operation) -> list[Any]:
    """Return the operands, of a shard_map those of its end."""
    if operation.name == "sdy.manual_computation":
        operation = list(operation.regions[0].blocks[0].operations)[-1]
    return list(operation.operands)


def constant_of(operation: Operation) -> object:
    """The value of a constant, or of one that is spread; None for other operations."""
    if operation.name == "stablehlo.broadcast_in_dim":
        root = root_of(operation.operands[0])
        return constant_of(root) if isinstance(root, ir.Operation) and root.name in CONSTANTS else None
    if operation.name not in CONSTANTS:
        return None
    try:
        return operation.attributes["value"]
    except TypeError:  # the bindings have no complex ones
        return "complex"


def root_of(value: Any) -> object:
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
            value = operands_of(operation)[number]
        elif name_of(operation) in PASSED_ON or (
            operation.name == "stablehlo.while" and _is_carried(operation, number)
        ):
            value = operation.operands[number]
        else:
            return operation


def _is_carried(loop: Operation, number: int) -> bool:
    """Return whether a loop passes the value of this number on unchanged."""
    if loop.name != "stablehlo.while":
        return False
    body = loop.regions[1].blocks[0]
    return bool(list(body.operations)[-1].operands[number] == body.arguments[number])
