"""How values are sharded, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ... import report
from ...ir.program import Program
from ...shardings import explained
from .shaped import at, shaped
from .source import Source

MOST_STEPS = 100
"""Of the way to a value at a border. In a deep network an axis may come through every layer."""


class Step(Struct, frozen=True):
    """An axis went from one value to another at an operation; `step` counts those of the whole propagation."""

    step: int | None
    operation: str
    rule: str | None
    source: str
    target: str
    file: str | None
    line: int | None


class Why(Struct, frozen=True):
    """Where one axis comes from: the steps lead from the value back to `root`, and `omitted` counts those before it
    that are not listed.

    Arguments, outputs and what stands at constraints and shard_maps have up to 100 steps, other values the last one:
    the value that it leads to has the next.
    """

    axis: str
    dim: int | None
    origin: str
    file: str | None
    line: int | None
    root: str
    steps: list[Step]
    omitted: int


class Sharding(Struct, frozen=True):
    """One value after propagation; see docs/report-json.md."""

    stage: str
    role: Literal["argument", "output", "constraint", "shard_map input", "shard_map output", "value"]
    value: str
    name: str
    global_type: str
    local_type: str | None
    spec: str | None
    asked: str | None
    agrees: bool | None
    replicated_bytes: int | None
    manual: list[str]
    source: Source
    why: list[Why]


class Side(Struct, frozen=True):
    """A value of an operation in a conflict: the axes that cut its dimension, and why."""

    value: str
    axes: list[str]
    why: list[Why]
    elsewhere: list[Why]


class Conflict(Struct, frozen=True):
    """Values of an operation are cut differently in dimensions that belong together, the `factor` of its rule."""

    operation: str
    rule: str
    factor: str
    file: str | None
    line: int | None
    won: Side
    lost: list[Side]


def conflict_of(found: report.Conflict) -> Conflict:
    """A conflict in its JSON shape."""
    return shaped(Conflict, found, **at(found.place), won=_side(found.won), lost=list(map(_side, found.lost)))


def _side(side: report.Side) -> Side:
    return shaped(
        Side,
        side,
        value=str(side.value),
        axes=list(map(str, side.axes)),
        why=list(map(why_of, side.why)),
        elsewhere=list(map(why_of, side.elsewhere)),
    )


def sharding_of(value: report.ShardedValue, program: Program) -> Sharding:
    """A sharded value in its JSON shape."""
    local = None if value.local_type is None else str(value.local_type)
    most = 1 if value.role == "value" else MOST_STEPS
    why = [why_of(found) for found in explained.why(program, value, most)]
    return shaped(Sharding, value, global_type=str(value.type), local_type=local, why=why)


def _step(step: report.ExplainedStep) -> Step:
    ends = {"source": str(step.source), "target": str(step.target)}
    return shaped(Step, step, **at(step.place), **ends, step=step.number)


def why_of(found: report.Why) -> Why:
    """Why one axis is where it is, in its JSON shape."""
    steps = list(map(_step, found.steps))
    words = {"axis": str(found.axis), "origin": str(found.origin), "root": str(found.root)}
    return shaped(Why, found, **at(found.place), **words, steps=steps)
