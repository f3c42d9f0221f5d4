"""Collectives on all devices in lock-step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .arrays import combined
from .element_types import Array, Value
from .errors import DeadlockError, NotEvaluatedError
from .operation import Operation

OnDevices = list[Value]
"""A value on each device; None on one that does not run the instruction."""


Groups = Sequence[Sequence[int]]
"""Groups of devices, or pairs of those that send and receive."""


def collective(operation: Operation, kind: str, operands: list[OnDevices], groups: Groups) -> OnDevices:
    """The results of a collective of a kind of `KINDS`, whose operands are each on all devices."""
    if kind == "collective-permute":
        if "slice_sizes" in operation.attributes or "update_windows" in operation.attributes:
            raise NotEvaluatedError("collective-permute of slices")
        return _together([permuted(operation, operand, groups) for operand in operands])
    if kind == "ragged-all-to-all":
        return _ragged(operation, operands, groups)
    devices = len(operands[0])
    if kind == "all-to-all" and "dimensions" not in operation.attributes:
        return _exchanged(operation, operands, groups)
    exchange = _EXCHANGES[kind]
    columns: list[OnDevices] = []
    for operand in operands:
        column: OnDevices = [None] * devices
        for group in groups:
            parts = taking_part(operation, operand, group)
            for device, value in zip(group, exchange(operation, parts) if parts else [None] * len(group), strict=True):
                column[device] = value
        columns.append(column)
    return _together(columns)


def _together(columns: list[OnDevices]) -> OnDevices:
    if len(columns) == 1:
        return columns[0]
    return [None if row[0] is None else row for row in zip(*columns, strict=True)]


def taking_part(operation: Operation, operand: OnDevices, group: Sequence[int]) -> list[Array]:
    """The values of a group; none where none of it takes part.

    Raises:
        DeadlockError: a part of the group takes part.
    """
    parts = [operand[device] for device in group]
    if all(part is None for part in parts):
        return []
    if any(part is None for part in parts):
        absent = [device for device, part in zip(group, parts, strict=True) if part is None]
        reason = f"{operation.opcode}: of the group {list(group)}, devices {absent} do not take part"
        raise DeadlockError(reason, devices=[device for device in group if device not in absent])
    return parts


def _gathered(operation: Operation, parts: list[Array]) -> list[Array]:
    whole = np.concatenate(parts, operation.number("dimensions"))
    return [whole] * len(parts)


def _summed(operation: Operation, parts: list[Array]) -> Array:
    name = operation.callee()
    simple = operation.simple(name)
    found = parts[0]
    for part in parts[1:]:
        found = operation.apply(name, found, part) if simple is None else combined(simple, found, part)
    return np.asarray(found).astype(parts[0].dtype, copy=False)


def _reduced(operation: Operation, parts: list[Array]) -> list[Array]:
    return [_summed(operation, parts)] * len(parts)


def _scattered(operation: Operation, parts: list[Array]) -> list[Array]:
    return list(np.split(_summed(operation, parts), len(parts), operation.number("dimensions")))


def _transposed(operation: Operation, parts: list[Array]) -> list[Array]:
    place = operation.number("dimensions")
    blocks = [np.split(part, len(parts), place) for part in parts]
    return [np.concatenate(row, place) for row in zip(*blocks, strict=True)]


def _copied(operation: Operation, parts: list[Array]) -> list[Array]:
    return [parts[0]] * len(parts)


_EXCHANGES: dict[str, Callable[[Operation, list[Array]], list[Array]]] = {
    "all-gather": _gathered,
    "all-reduce": _reduced,
    "all-to-all": _transposed,
    "collective-broadcast": _copied,
    "reduce-scatter": _scattered,
}

KINDS = (*_EXCHANGES, "collective-permute", "ragged-all-to-all")
"""The opcodes of collectives that are evaluated."""


def _exchanged(operation: Operation, operands: list[OnDevices], groups: Groups) -> OnDevices:
    """`all-to-all` of a tuple: operand i goes to device i of the group."""
    found: OnDevices = [None] * len(operands[0])
    for group in groups:
        if not taking_part(operation, operands[0], group):
            continue
        for place, device in enumerate(group):
            found[device] = tuple(operands[place][source] for source in group)
    return found


def permuted(operation: Operation, operand: OnDevices, pairs: Groups) -> OnDevices:
    """A value of each pair's first device on the second; devices that receive nothing have zeros."""
    first = next(value for value in operand if value is not None)
    column: OnDevices = [None if value is None else np.zeros_like(first) for value in operand]
    for source, target in pairs:
        if (operand[source] is None) != (operand[target] is None):
            waiting = source if operand[target] is None else target
            reason = f"{operation.opcode}: of the pair {source}, {target} one does not take part"
            raise DeadlockError(reason, devices=(waiting,))
        column[target] = operand[source]
    return column


def _ragged(operation: Operation, operands: list[OnDevices], groups: Groups) -> OnDevices:
    """`ragged-all-to-all`: slices of the first dimension, from `input_offsets` to `output_offsets` of each other."""
    data, output, input_offsets, send_sizes, output_offsets, _ = operands
    found: OnDevices = [None if value is None else np.array(value) for value in output]
    for group in groups:
        if not taking_part(operation, data, group):
            continue
        for sender in group:
            per = len(send_sizes[sender]) // len(group)
            for place, receiver in enumerate(group):
                for number in range(place * per, (place + 1) * per):
                    start, size = int(input_offsets[sender][number]), int(send_sizes[sender][number])
                    into = int(output_offsets[sender][number])
                    found[receiver][into : into + size] = data[sender][start : start + size]
    return found
