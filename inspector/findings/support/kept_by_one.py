"""Sums that one device of each group adds to, and the others to zeros, before all of it is summed once more.

So XLA's partitioner scatters into a value that all devices hold: `sum → select(partition-id) → scatter → sum`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dataflow.hlo import HloFlow, HloUse, HloValue
from ...dataflow.integers import PartitionNumbers
from ...ir.types import array_type


def kept_by_one(flow: HloFlow, use: HloUse, groups: Sequence[Sequence[int]], partitions: int) -> HloValue | None:
    """The result of a select that leaves a value on one device of each group, and zeros on all others."""
    if use.instruction.opcode != "select" or use.position not in (1, 2):
        return None
    condition = _scalar(flow, flow.operand(use.result, 0))
    other = _scalar(flow, flow.operand(use.result, 3 - use.position))
    if condition is None or other is None or not _is_zero(other):
        return None
    chosen = PartitionNumbers(flow, partitions).scalar(condition)
    if chosen is None or any(not 0 <= member < len(chosen) for group in groups for member in group):
        return None
    keeps = use.position == 1
    is_one = all(sum(bool(chosen[member]) == keeps for member in group) == 1 for group in groups)
    return use.result if groups and is_one else None


def is_added_to(flow: HloFlow, use: HloUse) -> bool:
    """Return whether something of another value is added to elements of one, the rest of which stay as they are."""
    if use.instruction.opcode == "add":
        return True
    called = flow.graph.called(use.instruction, "to_apply")
    root = None if called is None else called.root
    return use.instruction.opcode == "scatter" and use.position == 0 and root is not None and root.opcode == "add"


def _scalar(flow: HloFlow, value: HloValue | None) -> HloValue | None:
    """The one number of which an array is made."""
    origin = None if value is None else flow.origin(value)
    if origin is not None and origin.instruction.opcode == "broadcast":
        inside = flow.operand(origin, 0)
        origin = None if inside is None else flow.origin(inside)
    is_one = origin is not None and array_type(origin.instruction.type).elements == 1
    return origin if is_one else None


def _is_zero(value: HloValue) -> bool:
    literal = value.instruction.literal if value.instruction.opcode == "constant" else None
    try:
        return literal is not None and float(literal) == 0
    except ValueError:
        return False
