"""What Shardy wrote down at a value: its sharding after propagation, and where its axes come from."""

from __future__ import annotations

from collections.abc import Mapping

from ...parsers.errors import ParseError
from ...parsers.mlir import Operation, Origins, Sharding
from ...parsers.mlir.sdy_parser import parse_origins
from .dataflow import Dataflow, Node

_BY_ATTRIBUTE = frozenset({"sdy.sharding_constraint", "sdy.manual_computation", "sdy.reshard"})


def sharding_at(flow: Dataflow, node: Node) -> Sharding | None:
    """The sharding of a value after propagation; None where nothing is said, which means replicated."""
    try:
        match node.kind:
            case "argument":
                return flow.function.arguments[node.number].annotations.sharding
            case "output":
                return flow.function.results[node.number].annotations.sharding
            case "block":
                listed = flow.operation(node.row).annotations.in_shardings or ()
            case "result":
                listed = shardings_at(flow, node.row)
    except ParseError:
        return None
    return listed[node.number] if node.number < len(listed) else None


def shardings_at(flow: Dataflow, row: int) -> tuple[Sharding, ...]:
    """The shardings of an operation's results; constraints and shard_maps have them in attributes of their own."""
    found = flow.rows[row]
    if found.shardings is not None or found.name not in _BY_ATTRIBUTE:
        return found.shardings or ()
    return flow.noted(("shardings", row), lambda: shardings_of(flow.operation(row)))


def shardings_of(operation: Operation) -> tuple[Sharding, ...]:
    """The same of an operation that was found in another way than by its row."""
    try:
        annotations = operation.annotations
        if annotations.shardings is not None or operation.name not in _BY_ATTRIBUTE:
            return annotations.shardings or ()
        if operation.name == "sdy.manual_computation":
            return annotations.out_shardings or ()
        return () if annotations.target is None else (annotations.target,)
    except ParseError:
        return ()


def origins_at(flow: Dataflow, node: Node) -> Origins:
    """Where the axes of a value come from, as Shardy says."""
    try:
        match node.kind:
            case "argument":
                return _one(flow.function.arguments[node.number].attributes)
            case "output":
                return _one(flow.function.results[node.number].attributes)
            case "block" if flow.rows[node.row].name.endswith("manual_computation"):
                listed = flow.operation(node.row).annotations.block_argument_origins or ()
            case "block" | "result":
                listed = flow.records.origins(flow.rows[node.row])
    except ParseError:
        return ()
    return listed[node.number] if node.number < len(listed) else ()


def origin_name(flow: Dataflow, row: int) -> str | None:
    """The name by which origins refer to a constraint or a shard_map."""
    return flow.noted(("name", row), lambda: _origin_name(flow.operation(row)))


def _origin_name(operation: Operation) -> str | None:
    try:
        return operation.annotations.origin_name
    except ParseError:
        return None


def _one(attributes: Mapping[str, str]) -> Origins:
    written = attributes.get("sdy.sharding_origins")
    return () if written is None else parse_origins(written)
