"""Arguments and results: how values are sharded and why, and over which axes they vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from msgspec import Struct, field

from ... import report
from ...capture.model import Capture
from ...capture.protocol import trace
from .references import Reference, Text, shaped
from .shaped import SourceRef, at

MAX_STEPS = 100
"""Steps of the way to an argument, an output, or a value at a constraint or a shard_map."""


class Step(Struct, frozen=True):
    """An axis went from one value to another at an operation; `step` counts those of the whole propagation."""

    number: int | None = field(name="step")
    operation: str
    rule: str | None
    source: Text
    target: Text
    file: str | None
    line: int | None


class StepRef(Reference, table="steps"):
    """A step of propagation."""

    def entry(self) -> Step:
        """The step in its JSON shape."""
        step: report.ExplainedStep = self.value
        return shaped(Step, step, **at(step.place), operation=str(step.operation or "return"))


class Why(Struct, frozen=True):
    """The origin of one axis: the steps lead from the value back to `root`; `omitted` counts unlisted ones before it.

    Arguments, outputs and what stands at constraints and shard_maps have up to 100 steps, other values the last one:
    the value that it leads to has the next.
    """

    axis: Text
    dim: int | None
    origin: Text
    place: SourceRef = field(name="source")
    root: str | None
    steps: list[StepRef]
    omitted: int | None


class ReasonRef(Reference, table="reasons"):
    """The reason for an axis."""

    def entry(self) -> Why:
        """The reason in its JSON shape."""
        found: report.Why = self.value
        root = str(found.root) if found.steps or not found.omitted else None
        return shaped(Why, found, root=root, omitted=found.omitted or None)

    def shortened(self) -> ReasonRef:
        """The same without its steps and where they begin."""
        found: report.Why = self.value
        omitted = found.omitted + len(found.steps)
        return ReasonRef(replace(found, steps=(), omitted=omitted)) if omitted else self


class Sharding(Struct, frozen=True):
    """One value after propagation; see docs/report-json.md."""

    stage: str
    role: Literal["argument", "output", "constraint", "shard_map input", "shard_map output", "value"]
    value: str
    name: str
    type: Text = field(name="global_type")
    local_type: Text | None
    spec: str | None
    requested: str | None
    agrees: bool | None
    replicated_bytes: int | None
    manual: list[str]
    source: SourceRef
    why: list[ReasonRef]


class Side(Struct, frozen=True):
    """A value of an operation in a conflict: the axes that cut its dimension, and why."""

    value: Text
    axes: list[Text]
    why: list[ReasonRef]
    elsewhere: list[ReasonRef]


class Conflict(Struct, frozen=True):
    """Values of an operation are cut differently in dimensions that belong together, the `factor` of its rule."""

    operation: Text
    rule: str
    factor: str
    place: SourceRef = field(name="source")
    chosen: Side | None
    rejected: list[Side]
    undecided: list[Side]


def sharding_of(value: report.ShardedValue, found: report.Report, *, explain: bool) -> Sharding:
    """A sharded value in its JSON shape, with why it is sharded so if that is wanted."""
    why = found.on_demand.why(value, 1 if value.role == "value" else MAX_STEPS) if explain else ()
    return shaped(Sharding, value, why=why)


class Value(Struct, frozen=True, omit_defaults=True):
    """An argument or a result: `requested` is the PartitionSpec asked for, `actual` the one of the compiled program.

    Null where none was requested; where the program was not compiled, or has no PartitionSpec for it. What follows is
    left out where there is none: `layout` is the requested order of dimensions in memory, major to minor; `mesh` and
    `actual_mesh` are the keys of the specs' meshes, in a program that has several.
    """

    path: str
    type: str
    spec: str | None = field(name="requested")
    donated: bool
    actual: str | None
    layout: str | None = None
    mesh: str | None = None
    actual_mesh: str | None = None


def values_of(values: Sequence[trace.Value], capture: Capture) -> list[Value]:
    """The arguments or results in their JSON shape, without the key of the mesh where there is only one."""
    has_several = capture.subject is not None and len(capture.subject.meshes) > 1
    known = values if has_several else [replace(each, mesh=None, actual_mesh=None) for each in values]
    return [shaped(Value, each) for each in known]


class AxisEntry(Struct, frozen=True):
    """The origin of a variance over an axis: an equation, by its primitive or as an input of a shard_map."""

    axis: str
    equation: str
    by: str
    source: SourceRef


class Variance(Struct, frozen=True):
    """The mesh axes over which one value inside a shard_map varies, as JAX types it, or `inferred` with its check off.

    `hidden` are axes over which it may differ although its type says otherwise.
    """

    equation: str
    primitive: str
    value: str
    type: Text
    varying: list[str]
    unreduced: list[str]
    reduced: list[str]
    inferred: bool
    hidden: list[str]
    entered: list[AxisEntry]
    left: list[str]
    source: SourceRef
