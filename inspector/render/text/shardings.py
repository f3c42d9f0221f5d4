"""How arguments, outputs and what is constrained are sharded: asked, got, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import RenderableType

from ...report import Report, ShardedValue
from ...shardings.conflicts import conflicts
from ...shardings.explained import why
from ...shardings.table import values
from ...units import format_bytes
from ..collective_rows import common_name
from ..why_lines import conflict_lines, why_line
from .pieces import data, left_out, section, table

MOST_ROWS = 40
MOST_CHAINS = 12
MOST_REPLICATED = 5
MOST_CONFLICTS = 8
"""Lines of each part."""


def shardings(report: Report) -> RenderableType | None:
    """A table of what stands at the borders, and the ways on which shardings came that nobody asked for."""
    if not report.shardings:
        return None
    rows = list(_folded(report.shardings, report))
    shown = table("", "", "value", "asked", "got", "per device", "replicated", right=("replicated",))
    for count, value, name in rows[:MOST_ROWS]:
        asked = "" if value.asked is None else value.asked
        mark = " ✗" if value.agrees is False else ""
        shown.add_row(
            *map(
                data,
                (
                    f"{count}×" if count > 1 else "",
                    value.role,
                    name,
                    asked,
                    f"{value.spec or '?'}{mark}",
                    value.local_type or value.type,
                    format_bytes(value.replicated_bytes),
                ),
            )
        )
    lines: list[RenderableType] = [shown, *left_out(len(rows) - MOST_ROWS, "row")]
    differing = sum(value.agrees is False for value in report.shardings)
    title = "Shardings after propagation" + (f": {differing} not as asked (✗)" if differing else "")
    return section(title, [*lines, *_chains(rows, report), *_largest(report), *_conflicts(report)])


def _chains(rows: Sequence[tuple[int, ShardedValue, str]], report: Report) -> Iterable[RenderableType]:
    """Why what was not asked for is as it is."""
    unasked = [
        why_line(found, name, report)
        for _, value, name in rows
        if value.role in ("argument", "output") and (value.asked is None or value.agrees is False)
        for found in why(report.capture, value)
    ]
    return (
        *(data(line, "dim") for line in unasked[:MOST_CHAINS]),
        *left_out(len(unasked) - MOST_CHAINS, "", " of which the JSON report tells why"),
    )


def _largest(report: Report) -> Iterable[RenderableType]:
    """The intermediate values that take most for copies."""
    found = [value for value in values(report.capture) if value.replicated_bytes]
    found.sort(key=lambda value: -(value.replicated_bytes or 0))
    for value in found[:MOST_REPLICATED]:
        place = value.source.text(report.script)
        named = f"{value.name} ({place})" if place else value.name
        text = f"{format_bytes(value.replicated_bytes)} of copies: {named}, {value.type} as {value.spec}"
        yield data(text, "dim")


def _conflicts(report: Report) -> Iterable[RenderableType]:
    """Where shardings met that do not go together."""
    found = list(dict.fromkeys(tuple(conflict_lines(each, report)) for each in conflicts(report.capture)))
    for lines in found[:MOST_CONFLICTS]:
        yield from (data(line) for line in lines)
    yield from left_out(len(found) - MOST_CONFLICTS, "conflict")


def _folded(found: Iterable[ShardedValue], report: Report) -> Iterable[tuple[int, ShardedValue, str]]:
    """Neighbours that differ only in the indices in their names as one, `layers[*]['w']`, in the order of the first."""
    groups: dict[tuple[object, ...], list[tuple[ShardedValue, str]]] = {}
    for value in found:
        place = value.source.text(report.script) if value.role != "argument" else ""
        stem = "".join(part for part, _ in groupby("".join("#" if c.isdigit() else c for c in value.name)))
        key = (value.role, stem, place, value.asked, value.spec, value.type, value.agrees, value.replicated_bytes)
        groups.setdefault(key, []).append((value, place))
    for members in groups.values():
        first, place = members[0]
        name = common_name([member.name for member, _ in members])
        yield len(members), first, f"{name} ({place})" if place else name
