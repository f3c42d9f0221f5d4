"""How a collective is spelled: its kind, axes and types, how often it runs, and where it comes from."""

from __future__ import annotations

import re

from ...parsers.sharding_syntax.mesh import join_axes
from ..ir.types import ArrayType
from ..report import WRITTEN, Collective, Report
from ..units import plural

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


def types_text(collective: Collective) -> str:
    """`f32[2,4] → f32[8,4]`; what goes in only, where the same comes out."""
    operands, results = map(_several, (collective.operand_types, collective.result_types))
    return operands if operands == results else f"{operands} → {results}"


def executions_text(collective: Collective) -> str:
    """How often it runs; `?` where that is decided at run time."""
    return "?" if collective.executions is None else str(collective.executions)


def source_text(collective: Collective, report: Report) -> str:
    """The user's line; without one, the name that the compiler gives."""
    called = "" if argument_of(collective) else collective.op_name or ""
    return collective.source.function_text(report.script) or called


def _several(types: tuple[ArrayType, ...]) -> str:
    shown = ", ".join(map(str, types[:MAX_TYPES]))
    return shown if len(types) <= MAX_TYPES else f"{shown}, … {len(types)} in all"
