"""Gradients among the values of the propagated program."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...parsers.mlir import TensorType
from ..dataflow.meaning import SAME, Does, does, meaning_of
from ..dataflow.mlir import Dataflow, Node

BACKWARD = "transpose("
"""Markers of the backward pass in JAX's names of operations."""

MAX_STEPS = 24
"""Operations between a gradient and the output that it becomes: an optimizer's."""


def is_gradient(flow: Dataflow, row: int) -> bool:
    """Return whether an operation of the backward pass computes an output, up to elementwise operations.

    What is passed on to another product or sum is the gradient of an intermediate value, even if a bias is added to
    that, of which it is the gradient as well.
    """
    if not _is_backward(flow, row):
        return False
    returned = set(flow.returned)
    values: Collection[Node] = flow.results(row)
    seen, is_returned = set(values), False
    for _ in range(MAX_STEPS):
        is_returned = is_returned or not returned.isdisjoint(values)
        users = [(value, user) for value in values for user in flow.users(value)]
        if any(does(flow.rows[user].name) is Does.CONTRACT and _is_backward(flow, user) for _, user in users):
            return False
        made = (each for value, user in users for each in _made(flow, value, user))
        values = [each for each in dict.fromkeys(made) if each not in seen]
        seen.update(values)
    return is_returned


def _is_backward(flow: Dataflow, row: int) -> bool:
    # What is called in a loop has the names of its own function alone.
    names = (flow.names(each)[:1] for each in (row, *flow.around(row)))
    return any(BACKWARD in name for found in names for name in found)


def _made(flow: Dataflow, value: Node, user: int) -> Sequence[Node]:
    """Return the values that an operation makes of one without moving elements; of a loop's return, its results."""
    loop = flow.carried_by(user)
    if loop is not None:
        results = zip(flow.operands(user), flow.results(loop), strict=False)
        return [result for operand, result in results if operand == value]
    meaning = meaning_of(flow.rows[user].name)
    if meaning.does is Does.PLACE and meaning.first is not None:
        # A scatter adds updates to its first operand: XLA adds the gradient of a lookup to another one so.
        placed = (each for place, each in enumerate(flow.operands(user)) if meaning.of(place) is Does.PLACE)
        return flow.results(user) if value in placed else ()
    return flow.results(user) if _keeps_elements(flow, user) else ()


def _keeps_elements(flow: Dataflow, row: int) -> bool:
    """Return whether an operation is elementwise, or only changes the order of dimensions."""
    rule = flow.records.rule(flow.rows[row])
    if does(flow.rows[row].name) in SAME | Does.REPEAT:
        return True
    if rule is None:
        return False
    # A sum over a dimension of one element is that element.
    single = {factor for factor, size in rule.sizes if size == 1}
    if {*rule.reduction, *rule.need_replication, *rule.permutation} - single:
        return False
    types = flow.rows[row].types
    operands, results = ([_without(single, tensor) for tensor in tensors] for tensors in (rule.operands, rule.results))
    result = results[0] if len(results) == 1 else ()
    whole = len(types) == 1 and isinstance(types[0], TensorType)
    return whole and all(not operand or operand == result for operand in operands)


def _without(factors: Collection[str], tensor: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The factors of a tensor's dimensions, less some of them, and dimensions that have no other."""
    dims = (tuple(factor for factor in dim if factor not in factors) for dim in tensor)
    return tuple(dim for dim in dims if dim)
