"""Gradients among the values of the propagated program."""

from __future__ import annotations

from ...parsers.mlir import TensorType
from ..ir.def_use import forward
from .dataflow import Dataflow

BACKWARD = "transpose("
"""What JAX has in the names of operations of the backward pass."""

MAX_STEPS = 24
"""Operations between a gradient and the output that it becomes: an optimizer's."""


def is_gradient(flow: Dataflow, row: int) -> bool:
    """Whether an operation of the backward pass makes, but for what is done element by element, an output.

    What is passed on to another product or sum is the gradient of an intermediate value.
    """
    found = flow.names(row)
    if not found or BACKWARD not in found[0]:
        return False
    returned = set(flow.returned)
    ways = forward(flow, flow.results(row), MAX_STEPS, lambda user: _keeps_elements(flow, user))
    return any(not returned.isdisjoint(reached) for reached in ways)


def _keeps_elements(flow: Dataflow, row: int) -> bool:
    """Whether an operation works element by element, or only changes the order of dimensions."""
    rule = flow.records.rule(flow.rows[row])
    if flow.rows[row].name.rpartition(".")[2] in (
        "optimization_barrier",
        "sharding_constraint",
        "reshape",
        "transpose",
    ):
        return True
    if rule is None or rule.reduction or rule.need_replication or rule.permutation:
        return False
    types = flow.rows[row].types
    (result,) = rule.results if len(rule.results) == 1 else ((),)
    whole = len(types) == 1 and isinstance(types[0], TensorType)
    return whole and all(not operand or operand == result for operand in rule.operands)
