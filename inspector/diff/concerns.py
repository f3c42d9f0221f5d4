"""Findings as they are compared: by rule, axes and place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from ...parsers.sharding_syntax.mesh import AxisRef
from ..report import Finding, Report, Severity
from .lines import NOWHERE, Line, Lines
from .pairing import Rule


@dataclass(frozen=True, slots=True)
class Concern:
    """A finding; what is told of it is not compared."""

    rule: str
    axes: tuple[AxisRef, ...]
    line: Line
    slug: str = field(compare=False)
    severity: Severity = field(compare=False)
    message: str = field(compare=False)
    where: str = field(compare=False)


def concerns(report: Report, lines: Lines) -> tuple[tuple[Concern, int], ...]:
    """The findings of a report, each with how often it is there."""
    return tuple(Counter(_concern(found, report, lines) for found in report.findings).items())


def _concern(found: Finding, report: Report, lines: Lines) -> Concern:
    frame = found.place.source.frame
    line = NOWHERE if frame is None else lines.of((frame,))[0]
    where = found.place.source.function_text(report.script) or found.place.what
    return Concern(found.rule, found.axes, line, found.slug, found.severity, found.message, where)


def _same(one: Concern) -> Hashable:
    return one


def _same_function(one: Concern) -> Hashable:
    return one.rule, one.axes, one.line[0]


def _same_axes(one: Concern) -> Hashable:
    return one.rule, one.axes


RULES: tuple[Rule[Concern], ...] = (_same, _same_function, _same_axes)
