"""Keys by which findings and intermediate shardings are compared: their place, without numbers and positions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace

from ...parsers.source import Frame
from ..ir.program import Program
from ..report import Report
from ..report.changes import FindingKey, IntermediateSharding, Line, Pair
from ..shardings.table import values
from .pairing import Rule, pair_up

NOWHERE: Line = ("", "")

_OUTER = re.compile(r"[\w.<>]*>\.")
"""Python's prefix of the name of a nested function."""


class Lines:
    """The frames of one capture with their lines' texts, each file split once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._files: dict[str, list[str]] = {}
        self._known: dict[Frame, Line] = {}

    def of(self, stack: Iterable[Frame]) -> tuple[Line, ...]:
        """The lines of a stack, innermost first."""
        return tuple(map(self._of_one, stack))

    def innermost(self, frame: Frame | None) -> Line:
        """The line of a frame."""
        return NOWHERE if frame is None else self._of_one(frame)

    def _of_one(self, frame: Frame) -> Line:
        if frame not in self._known:
            lines = self._files.get(frame.file)
            if lines is None:
                source = self._program.file(frame.file)
                lines = [] if source is None else source.data.decode("utf-8", "replace").split("\n")
                self._files[frame.file] = lines
            text = lines[frame.line - 1].partition(" #")[0].strip() if 0 < frame.line <= len(lines) else ""
            self._known[frame] = (_OUTER.sub("", frame.function), text)
        return self._known[frame]


def finding_keys(report: Report, lines: Lines) -> tuple[tuple[FindingKey, int], ...]:
    """The keys of the findings of a report, each with how many findings have it."""
    counted = Counter[FindingKey]()
    for found in report.findings:
        source = found.place.source
        where = source.function_text(report.script) or found.place.what
        counted[FindingKey(found.rule, found.axes, lines.innermost(source.frame), finding=found, where=where)] += 1
    return tuple(counted.items())


FINDING_RULES: tuple[Rule[FindingKey], ...] = (
    lambda one: one,
    lambda one: (one.rule, one.axes, one.line[0]),
    lambda one: (one.rule, one.axes),
)


def intermediate_shardings(report: Report, lines: Lines) -> tuple[tuple[IntermediateSharding, int], ...]:
    """Count the shardings at constraints, at shard_maps and of the results of operations."""
    counted: Counter[IntermediateSharding] = Counter()
    inner = (value for value in report.shardings if value.role not in ("argument", "output"))
    for value in (*inner, *values(report.program)):
        frame = value.source.frame
        if frame is None and value.role == "value":
            continue
        where = value.source.function_text(report.script)
        counted[
            IntermediateSharding(value.role, value.name, str(value.type), value.spec, lines.innermost(frame), where)
        ] += 1
    return tuple(counted.items())


INTERMEDIATE_RULES: tuple[Rule[IntermediateSharding], ...] = (
    lambda one: one,
    lambda one: (one.role, one.line, one.name, one.type),
    # A constraint on a line whose text changed; results of operations are too alike for this.
    lambda one: None if one.role == "value" else (one.role, one.line[0], one.type),
)


def intermediate_changes(
    before: tuple[tuple[IntermediateSharding, int], ...], after: tuple[tuple[IntermediateSharding, int], ...]
) -> tuple[Pair[IntermediateSharding], ...]:
    """Values that are sharded differently, and constraints that were added or removed, equal ones as one change.

    What else is on one side only is other code, whose collectives and outputs say what it does.
    """
    counted: dict[Hashable, Pair[IntermediateSharding]] = {}
    for pair in pair_up(before, after, INTERMEDIATE_RULES):
        one, other, present = pair.before, pair.after, pair.present
        if one is not None and other is not None and one.spec == other.spec:
            continue
        if (one is None or other is None) and present.role != "constraint":
            continue
        key = (present.role, present.line, *(None if side is None else side.spec for side in (one, other)))
        first = counted.get(key, Pair(one, other, 0))
        counted[key] = replace(first, count=first.count + pair.count)
    return tuple(counted.values())
