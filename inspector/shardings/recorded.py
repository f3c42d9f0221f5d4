"""What Shardy wrote down at a value: its sharding after propagation, and where its axes come from."""

from __future__ import annotations

from collections.abc import Mapping

from ...parsers.errors import ParseError
from ...parsers.mlir import Origins, Sharding
from ...parsers.mlir.sdy_parser import parse_origins
from .dataflow import Dataflow, Node

_BY_ATTRIBUTE = frozenset({"sdy.sharding_constraint", "sdy.manual_computation", "sdy.reshard"})


def sharding_at(flow: Dataflow, node: Node) -> Sharding | None:
    """The sharding of a value after propagation; None where nothing is said, which means replicated."""
    try:
        match node.kind:
            case "argument":
                return flow.function.arguments[node.index].annotations.sharding
            case "output":
                return flow.function.results[node.index].annotations.sharding
            case "block":
                listed = flow.operation(node.row).annotations.in_shardings or ()
            case "result":
                listed = shardings_at(flow, node.row)
    except ParseError:
        return None
    return listed[node.index] if node.index < len(listed) else None


def shardings_at(flow: Dataflow, row: int) -> tuple[Sharding, ...]:
    """The shardings of an operation's results; constraints and shard_maps have them in attributes of their own."""
    found = flow.rows[row]
    if found.shardings is not None or found.name not in _BY_ATTRIBUTE:
        return found.shardings or ()
    annotations = flow.operation(row).annotations
    try:
        if found.name == "sdy.manual_computation":
            return annotations.out_shardings or ()
        return () if annotations.target is None else (annotations.target,)
    except ParseError:
        return ()


def origins_at(flow: Dataflow, node: Node) -> Origins:
    """Where the axes of a value come from, as Shardy says."""
    try:
        match node.kind:
            case "argument":
                found = _one(flow.function.arguments[node.index].attributes)
            case "output":
                found = _one(flow.function.results[node.index].attributes)
            case "block" if not flow.rows[node.row].name.endswith("manual_computation"):
                found = _listed(flow.operation(node.row).annotations.origins, node.index)
            case "block":
                found = _listed(flow.operation(node.row).annotations.block_argument_origins, node.index)
            case "result":
                found = _listed(flow.operation(node.row).annotations.origins, node.index)
    except ParseError:
        return ()
    return found


def _listed(listed: tuple[Origins, ...] | None, index: int) -> Origins:
    return listed[index] if listed is not None and index < len(listed) else ()


def origin_name(flow: Dataflow, row: int) -> str | None:
    """The name by which origins refer to a constraint or a shard_map."""
    try:
        return flow.operation(row).annotations.origin_name
    except ParseError:
        return None


def _one(attributes: Mapping[str, str]) -> Origins:
    written = attributes.get("sdy.sharding_origins")
    return () if written is None else parse_origins(written)
