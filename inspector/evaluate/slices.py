"""Programs of several TPU slices: each runs the module of one, and the host carries values from one to another.

A `send` and its `recv` do what their frontend attributes say. Values are gathered, scattered and exchanged along the
outermost dimension in memory, as libtpu lays them out for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...parsers.hlo import HloModule, Instruction
from ..capture.model import Device
from ..collectives.dcn_transfers import RENDEZVOUS, as_partitions, in_every_slice, slices_of, transfer_of
from .arrays import combined
from .collectives import OnDevices, permuted, taking_part
from .element_types import Array, array_type
from .errors import NotEvaluatedError
from .memory import outermost
from .operation import Operation

REDUCTIONS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply", "and": "and", "or": "or"}
"""Opcodes of the reductions that transfers name."""


class Slices:
    """The partitions on each slice, none where the module is of all devices; and values on their way between slices."""

    def __init__(self, module: HloModule, devices: Sequence[Device]) -> None:
        self._devices = devices
        self.members = slices_of(module, devices)
        self._place_of = {
            partition: (number, place)
            for number, members in enumerate(self.members)
            for place, partition in enumerate(members)
        }
        self._sent: dict[str, OnDevices] = {}
        self._receiving: dict[int, Operation] = {}

    @property
    def numbers(self) -> list[int]:
        """The number of each partition's slice."""
        return [self._place_of[partition][0] for partition in range(len(self._devices))]

    def places(self, count: int) -> list[int]:
        """The number of each partition in its module."""
        return [self._place_of[partition][1] for partition in range(count)] if self.members else list(range(count))

    def groups(self, instruction: Instruction, count: int) -> list[list[int]]:
        """The groups of partitions that communicate."""
        groups = instruction.replica_groups
        size = len(self.members[0]) if self.members else count
        rows = [list(row) for row in groups.devices(size)] if groups is not None else []
        rows = rows if any(rows) else [list(range(size))]
        return [list(row) for row in in_every_slice(tuple(map(tuple, rows)), self.members)] if self.members else rows

    def pairs(self, instruction: Instruction) -> Sequence[Sequence[int]]:
        """The partitions that send, each with the one that receives."""
        pairs = instruction.source_target_pairs or ()
        return in_every_slice(tuple(map(tuple, pairs)), self.members) if self.members else pairs

    def send(self, operation: Operation, values: OnDevices, tokens: OnDevices) -> OnDevices:
        """`send`."""
        self._sent[_rendezvous(operation)] = values
        return tokens

    def begin(self, operation: Operation, tokens: OnDevices) -> OnDevices:
        """`recv`, whose value is there at its end."""
        self._receiving[operation.number("channel_id")] = operation
        return tokens

    def received(self, operation: Operation) -> OnDevices:
        """`recv-done`."""
        begun = self._receiving.pop(operation.number("channel_id"))
        sent = self._sent.pop(_rendezvous(begun), None)
        transfer = transfer_of(begun.instruction.frontend_attributes)
        if sent is None or transfer is None:
            raise NotEvaluatedError("recv-done: a value that was not sent before")
        if transfer.kind == "collective-permute":
            found = permuted(begun, sent, as_partitions(transfer.pairs, self._devices))
        else:
            found = [None] * len(sent)
            for group in as_partitions(transfer.groups, self._devices):
                parts = taking_part(begun, sent, group)
                if parts:
                    values = self._exchanged(begun, transfer.kind, transfer.reduction or "", parts)
                    for partition, value in zip(group, values, strict=True):
                        found[partition] = value
        return [None if value is None else (value, np.zeros((), bool)) for value in found]

    def _exchanged(self, begun: Operation, kind: str, reduction: str, parts: list[Array]) -> list[Array]:
        type = array_type(begun.types[0])
        place, count = outermost(type), len(parts)
        if kind == "all-gather":
            found = [np.concatenate(parts, place)] * count
        elif kind == "all-to-all":
            blocks = [np.split(part, count, place) for part in parts]
            found = [np.concatenate(row, place) for row in zip(*blocks, strict=True)]
        elif kind in ("all-reduce", "reduce-scatter") and reduction in REDUCTIONS:
            whole = parts[0]
            for part in parts[1:]:
                whole = combined(REDUCTIONS[reduction], whole, part)
            found = [whole] * count if kind == "all-reduce" else np.split(whole, count, place)
        else:
            raise NotEvaluatedError(f"recv: {kind} {reduction} between slices")
        if found[0].shape != type.dims:
            raise NotEvaluatedError(f"recv: {kind} between slices gives {found[0].shape} for {type}")
        return found


def _rendezvous(operation: Operation) -> str:
    name = operation.instruction.frontend_attributes.get(RENDEZVOUS)
    if name is None:
        raise NotEvaluatedError(f"{operation.opcode}: a transfer with the host")
    return name
