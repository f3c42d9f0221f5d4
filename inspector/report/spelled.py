"""A collective as text spells it: its kind, axes and types, how often it runs, and where it comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ...parsers.sharding_syntax.mesh import MeshSyntax, join_axes
from ...parsers.sharding_syntax.replica_groups import Groups
from ..ir.types import ArrayType
from ..units import plural, with_more
from . import WRITTEN, Collective, Report

MAX_TYPES = 2
"""Operands of one collective that are spelled out."""

_ARGUMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\]|\.\w+)*")


def argument_of(collective: Collective) -> str | None:
    """The argument that a collective moves, where the compiler names it so: `state[0]['embedding']`."""
    name = collective.op_name
    return name if name is not None and collective.origin not in WRITTEN and _ARGUMENT.fullmatch(name) else None


def kind_text(collective: Collective) -> str:
    """`all-reduce max async`: sums are not worth a word."""
    reduction = collective.reduction if collective.reduction not in (None, "sum") else ""
    return " ".join(filter(None, (collective.kind, reduction, "async" if collective.is_async else "")))


def axes_text(collective: Collective) -> str:
    """The axes by name; for groups that no axes form, how many there are."""
    if collective.axes is None:
        return plural(len(collective.groups), "group") if collective.groups else "?"
    return join_axes(collective.axes) or "none"


def over_text(collective: Collective) -> str:
    """The same within a sentence: `data, model`, or `groups of 4 devices`."""
    if collective.axes:
        return join_axes(collective.axes)
    sizes = " or ".join(map(str, sorted({len(group) for group in collective.groups})))
    return f"groups of {sizes} devices" if sizes else "its devices"


def mesh_of(collective: Collective, report: Report) -> MeshSyntax:
    """The mesh on which it is drawn: one that has its axes, else any of that many devices, else just the devices."""
    named = {axis.name for axis in collective.axes or ()}
    whole = [mesh for mesh in report.meshes if mesh.size == report.partitions and mesh.axes]
    fitting = [mesh for mesh in whole if named <= {name for name, _ in mesh.axes}]
    return next(iter(fitting or whole), MeshSyntax((("device", report.partitions),)))


def groups_text(collective: Collective, mesh: MeshSyntax) -> str:
    """`16 groups of 16 along fsdp; tp fixed in each`, `64 groups of 64; members are 64 apart`, or `8 transfers`."""
    if collective.pairs:
        return plural(len(collective.pairs), "transfer")
    sizes = sorted({len(group) for group in collective.groups})
    words = f"{plural(len(collective.groups), 'group')} of {' or '.join(map(str, sizes)) or '?'}"
    step = step_of(collective.groups)
    if not collective.axes and len(mesh.axes) == 1 and len(collective.groups) > 1 and step is not None:
        return f"{words}; members are {'consecutive' if step == 1 else f'{step:,} apart'}"
    # A part of an axis is neither whole in a group nor the same in all of it.
    if not collective.axes or any(str(axis) != axis.name for axis in collective.axes) or len(collective.groups) < 2:
        return words
    along = [axis.name for axis in collective.axes]
    fixed = [name for name, size in mesh.axes if name not in along and size > 1]
    rest = f"; {', '.join(fixed)} fixed in each" if fixed else ""
    return f"{words} along {', '.join(along)}{rest}"


def step_of(groups: Groups) -> int | None:
    """Return the difference of neighbours in all groups; None if it is not the same everywhere."""
    steps = {other - one for group in groups for one, other in pairwise(group)}
    return next(iter(steps)) if len(steps) == 1 else None


def transfer_text(collectives: Sequence[Collective]) -> str:
    """`all-gather fsdp and 2 more`: what goes on at once, by the first of them."""
    return with_more(f"{kind_text(collectives[0])} {axes_text(collectives[0])}", len(collectives))


def types_text(collective: Collective) -> str:
    """`f32[2,4] → f32[8,4]`; what goes in only, where the same comes out."""
    operands, results = map(_several, (collective.operand_types, collective.result_types))
    return operands if operands == results else f"{operands} → {results}"


def executions_text(collective: Collective) -> str:
    """Return the number of executions as text; `≤ 1` or `?` where it is decided at run time."""
    if collective.executions is None:
        return "?" if collective.most_executions is None else f"≤ {collective.most_executions}"
    return str(collective.executions)


def source_text(collective: Collective, report: Report) -> str:
    """The user's line; without one, the name that the compiler gives."""
    called = "" if argument_of(collective) else collective.op_name or ""
    return collective.source.function_text(report.script) or called


def _several(types: tuple[ArrayType, ...]) -> str:
    """The types, of many the largest ones: those are what is sent."""
    largest = types if len(types) <= MAX_TYPES else sorted(types, key=lambda type: -(type.bytes or 0))
    shown = ", ".join(map(str, largest[:MAX_TYPES]))
    return shown if len(types) <= MAX_TYPES else f"{shown}, … {len(types)} in all"
