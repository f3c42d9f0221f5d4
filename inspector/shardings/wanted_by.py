"""The shardings that an operation requests for its operands."""

from __future__ import annotations

from collections.abc import Iterator

from ...parsers.errors import ParseError
from ..catalog.spellings import SDY_REQUESTS
from ..ir.array_sharding import ArraySharding
from .dataflow import Dataflow, Node
from .sharded_dimensions import as_placed, placed_at


def wanted_by(flow: Dataflow, row: int) -> Iterator[tuple[Node, ArraySharding | None]]:
    """Yield the operands of a constraint, a reshard or a shard_map, each with the requested sharding."""
    name, operands = flow.rows[row].name, flow.operands(row)
    if name == "sdy.manual_computation":
        try:
            specs = flow.operation(row).annotations.in_shardings or ()
        except ParseError:
            return
        wanted = [as_placed(flow, spec) for spec in specs]
    elif name in SDY_REQUESTS:
        wanted = [placed_at(flow, node) for node in flow.results(row)]
    else:
        return
    yield from ((node, own) for node, own in zip(operands, wanted, strict=False) if node is not None)
