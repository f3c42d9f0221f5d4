"""Values of the compiled program on each device: before and after each collective, and of each output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ...parsers.hlo import ArrayShape, HloType
from ...parsers.hlo.types import leaves
from ..capture.protocol.values import Probe, Shard, digest_of, part_text, statistics_of
from .case import Output
from .collectives import OnDevices
from .compare import flat
from .element_types import Array
from .operation import Operation

MAX_ITERATIONS = 16
"""Executions of a collective whose values are kept."""

MAX_BYTES = 1 << 22
"""Bytes of elements that are kept in all; figures are kept of more."""

MAX_EXTENT = 16
"""Elements along each dimension that are kept of a shard."""

MAX_SHARDS, MAX_READ = 50_000, 1 << 28
"""Shards, and bytes of them, of which figures are kept."""


class Observer:
    """Collects probes while a program is evaluated; their devices are partitions."""

    def __init__(self) -> None:
        self.probes: list[Probe] = []
        self._room = MAX_BYTES
        self._shards, self._unread = MAX_SHARDS, MAX_READ
        self._executions: Counter[str] = Counter()

    def collective(
        self,
        operation: Operation,
        operands: Sequence[OnDevices],
        result: OnDevices,
        loops: Sequence[tuple[str, int]],
    ) -> None:
        """Keep the operands and results of one execution of a collective in iterations of loops, outermost first."""
        instruction = operation.instruction
        self._executions[instruction.name] += 1
        if self._executions[instruction.name] > MAX_ITERATIONS:
            return
        path = (f"%{instruction.name}",)
        iteration, names = tuple(number for _, number in loops), tuple(name for name, _ in loops)
        for position, (type, values) in enumerate(zip(operation.operand_types, operands, strict=False)):
            self._keep(path, "before", position, type, values, iteration, names)
        rows = [None if value is None else flat(value) for value in result]
        types = [type for type in leaves(instruction.type) if isinstance(type, ArrayShape)]
        for position, first in enumerate(next(filter(None, rows), ())):
            # The type of an asynchronous start begins with its operands.
            alike = next((type for type in types[position:] if type.dims == first.shape), None)
            column = [None if row is None else row[position] for row in rows]
            self._keep(path, "after", position, alike, column, iteration, names)

    def outputs(self, outputs: Sequence[Output], found: Sequence[OnDevices]) -> None:
        """Keep the block of each output on each device."""
        for position, (output, values) in enumerate(zip(outputs, found, strict=False)):
            parts = [part_text(block, output.shape) for block in output.blocks]
            self._keep((), "output", position, None, values, parts=parts)

    def _keep(
        self,
        path: tuple[str, ...],
        when: Literal["before", "after", "output"],
        position: int,
        type: HloType | None,
        values: OnDevices,
        iteration: tuple[int, ...] = (),
        loops: tuple[str, ...] = (),
        parts: Sequence[str] = (),
    ) -> None:
        held: list[tuple[int, Array]] = [
            (device, value) for device, value in enumerate(values) if isinstance(value, np.ndarray | np.generic)
        ]
        size = sum(value.nbytes for value in {id(value): value for _, value in held}.values())
        if not held or len(held) > self._shards or size > self._unread:
            return
        self._shards -= len(held)
        self._unread -= size
        known: dict[int, tuple[str, dict[str, Any]]] = {}
        for _, value in held:
            if id(value) not in known:
                known[id(value)] = digest_of(value), _figures(value)
        shards = []
        for device, value in held:
            digest, figures = known[id(value)]
            shards.append(Shard(device, (), digest, parts[device] if parts else "", **figures))
        first = np.asarray(held[0][1])
        extent = tuple(min(size, MAX_EXTENT) for size in first.shape)
        window = tuple(map(slice, extent))
        data = b"".join(np.ascontiguousarray(value[window]).tobytes() for _, value in held)
        data = data if len(data) <= self._room else b""
        self._room -= len(data)
        described = f"{type.dtype}[{','.join(map(str, type.dims))}]" if isinstance(type, ArrayShape) else ""
        figures_of = (described, str(first.dtype), first.shape, (), tuple(shards), iteration, loops)
        self.probes.append(Probe(path, when, position, *figures_of, (0,) * first.ndim, extent, data))


def _figures(value: Array) -> dict[str, Any]:
    if value.dtype.kind == "c" or not value.size:
        return {}
    return statistics_of(value[np.isfinite(value)] if value.dtype.kind == "f" else value.reshape(-1), value.size)
