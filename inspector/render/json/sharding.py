"""How values are sharded, and why."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ... import report
from ...ir.program import Program
from ...shardings import conflicts, explained
from .source import Source, source_of

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


def conflict_of(found: conflicts.Conflict) -> Conflict:
    """A conflict in its JSON shape."""
    return Conflict(
        operation=found.operation,
        rule=found.rule,
        factor=found.factor,
        file=found.place.file,
        line=found.place.line,
        won=_side(found.won),
        lost=list(map(_side, found.lost)),
    )


def _side(side: conflicts.Side) -> Side:
    return Side(
        value=side.value,
        axes=list(side.axes),
        why=[why_of(why) for why in side.why],
        elsewhere=[why_of(why) for why in side.elsewhere],
    )


def sharding_of(value: report.ShardedValue, program: Program) -> Sharding:
    """A sharded value in its JSON shape."""
    most = 1 if value.role == "value" else MOST_STEPS
    return Sharding(
        stage=value.stage,
        role=value.role,
        value=value.value,
        name=value.name,
        global_type=value.type,
        local_type=value.local_type,
        spec=value.spec,
        asked=value.asked,
        agrees=value.agrees,
        replicated_bytes=value.replicated_bytes,
        manual=list(value.manual),
        source=source_of(value.source),
        why=[why_of(found) for found in explained.why(program, value, most)],
    )


def why_of(found: explained.Why) -> Why:
    """Why one axis is where it is, in its JSON shape."""
    return Why(
        axis=str(found.axis),
        dim=found.dim,
        origin=found.origin,
        file=found.place.file,
        line=found.place.line,
        root=found.root,
        steps=list(map(_step, found.steps)),
        omitted=found.omitted,
    )


def _step(step: explained.ExplainedStep) -> Step:
    return Step(
        step=step.number,
        operation=step.operation,
        rule=step.rule,
        source=step.source,
        target=step.target,
        file=step.place.file,
        line=step.place.line,
    )
