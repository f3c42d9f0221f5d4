"""Arguments and results: how values are sharded and why, and over which axes they vary."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ... import report
from ...ir.program import Program
from ...shardings import explained
from .shaped import Source, at, shaped

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
    won: Side | None
    lost: list[Side]
    undecided: list[Side]


def conflict_of(found: report.Conflict) -> Conflict:
    """A conflict in its JSON shape."""
    return shaped(
        Conflict,
        found,
        **at(found.place),
        won=None if found.won is None else _side(found.won),
        lost=list(map(_side, found.lost)),
        undecided=list(map(_side, found.undecided)),
    )


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


class Value(Struct, frozen=True):
    """An argument or a result: `asked` is the requested PartitionSpec, `actual` the one of the compiled program.

    Null where none was requested; where the program was not compiled, or has no PartitionSpec for it.
    """

    path: str
    type: str
    spec: str | None = field(name="asked")
    donated: bool
    actual: str | None = None


class AxisEntry(Struct, frozen=True):
    """Where a value came to vary over an axis: an equation, by its primitive or as an input of a shard_map."""

    axis: str
    equation: str
    by: str
    source: Source


class Variance(Struct, frozen=True):
    """The mesh axes over which one value inside a shard_map varies, as JAX types it, or `inferred` with its check off.

    `hidden` are axes over which it may differ although its type says otherwise.
    """

    equation: str
    primitive: str
    value: str
    type: str
    varying: list[str]
    unreduced: list[str]
    reduced: list[str]
    inferred: bool
    hidden: list[str]
    entered: list[AxisEntry]
    left: list[str]
    source: Source
