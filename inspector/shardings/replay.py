"""The module after each step of the propagation: what was sharded by then, and what the step did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...parsers.mlir.sdy import DimensionSharding, Sharding
from ...parsers.sharding_syntax.mesh import AxisRef
from ..ir.derived import derived
from .dataflow import Dataflow, Node
from .moves import Move, moves_of
from .recorded import sharding_at
from .why import origin_of, overlap

BEFORE = -1
"""The step before the first one: what the program itself says."""


class Replay:
    """The propagation of a dataflow, forwards and backwards; `steps` are the numbers at which something moved."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        moves: dict[int, list[Move]] = {}
        arrivals: dict[Node, list[tuple[int, AxisRef]]] = {}
        for move in moves_of(flow).all:
            moves.setdefault(move.step, []).append(move)
            for node in move.targets:
                arrivals.setdefault(node, []).append((move.step, move.axis))
        self.moves: Mapping[int, tuple[Move, ...]] = {step: tuple(found) for step, found in moves.items()}
        self.steps: tuple[int, ...] = tuple(sorted(moves))
        self._arrivals = arrivals

    def arrival(self, node: Node, axis: AxisRef) -> int:
        """The step that brought an axis to a value; `BEFORE` for one that it had from the beginning."""
        own = origin_of(self.flow, node, axis)
        if own is not None and own.kind == "self":
            return BEFORE
        came = [step for step, moved in self._arrivals.get(node, ()) if overlap(moved, axis)]
        if came:
            return min(came)
        if node.kind == "output" and node.number < len(self.flow.returned):
            returned = self.flow.returned[node.number]
            return BEFORE if returned is None else self.arrival(returned, axis)
        return BEFORE

    def after(self, node: Node, step: int) -> Sharding | None:
        """The sharding of a value after a step."""
        final = sharding_at(self.flow, node)
        if final is None:
            return None
        dims = [
            DimensionSharding(tuple(axis for axis in dim.axes if self.arrival(node, axis) <= step))
            for dim in final.dims
        ]
        return replace(final, dims=tuple(dims))


@derived
def replay_of(flow: Dataflow) -> Replay:
    """The replay of a dataflow; the first one reads every step."""
    return Replay(flow)
