"""How values inside a program are sharded: at constraints and shard_maps, and the result of every operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from ..report import Report, Role
from ..shardings.table import values
from .lines import NOWHERE, Line, Lines
from .pairing import Rule, pair_up


@dataclass(frozen=True, slots=True)
class Inside:
    """A value, by where it stands; `spec` is None where its sharding is not known. `where` is not compared."""

    role: Role
    name: str
    type: str
    spec: str | None
    line: Line
    where: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class InsideChange:
    """`count` values of one line whose sharding went the same way; constraints may have come or gone."""

    before: Inside | None
    after: Inside | None
    count: int


def insides(report: Report, lines: Lines) -> tuple[tuple[Inside, int], ...]:
    """All of a program that stand somewhere, each with how often it is there; arguments and outputs are left out."""
    counted: Counter[Inside] = Counter()
    inner = (value for value in report.shardings if value.role not in ("argument", "output"))
    for value in (*inner, *values(report.program)):
        frame = value.source.frame
        if frame is None and value.role == "value":
            continue
        line = NOWHERE if frame is None else lines.of((frame,))[0]
        where = value.source.function_text(report.script)
        counted[Inside(value.role, value.name, str(value.type), value.spec, line, where)] += 1
    return tuple(counted.items())


def _same(one: Inside) -> Hashable:
    return one


def _same_value(one: Inside) -> Hashable:
    return one.role, one.line, one.name, one.type


def _same_function(one: Inside) -> Hashable:
    """A constraint on a line whose text changed; results of operations are too alike for this."""
    return None if one.role == "value" else (one.role, one.line[0], one.type)


RULES: tuple[Rule[Inside], ...] = (_same, _same_value, _same_function)


def inside_changes(
    before: tuple[tuple[Inside, int], ...], after: tuple[tuple[Inside, int], ...]
) -> tuple[InsideChange, ...]:
    """Those that are sharded otherwise, and constraints that came or went; those that go alike are one change.

    What else is on one side only is other code, whose collectives and outputs say what it does.
    """
    counted: dict[Hashable, tuple[InsideChange, int]] = {}
    for pair in pair_up(before, after, RULES):
        one, other = pair.before, pair.after
        present = other or one
        if present is None or (one is not None and other is not None and one.spec == other.spec):
            continue
        if (one is None or other is None) and present.role != "constraint":
            continue
        key = (present.role, present.line, *(None if side is None else side.spec for side in (one, other)))
        first, count = counted.get(key, (InsideChange(one, other, 0), 0))
        counted[key] = (first, count + pair.count)
    return tuple(InsideChange(first.before, first.after, count) for first, count in counted.values())
