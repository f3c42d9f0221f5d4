"""The rows of the shardings' table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.content import Content

from ..inspector.report import Report, ShardedValue
from ..inspector.shardings.replay import replay_of
from ..inspector.shardings.spelled import as_spec, from_sdy
from ..inspector.shardings.table import node_of, propagated
from ..inspector.units import format_bytes
from .columns import Column
from .pieces import data
from .row_table import Row

COLUMNS = (
    Column("", 6, 4),
    Column("value", 20, 10),
    Column("type", 8, 5),
    Column("asked", 8, 7),
    Column("got", 14, 9),
    Column("per device", 8, 6),
    Column("replicated", 8, 8, "right"),
    Column("from", 8, 3),
)

FILTERS: Mapping[str, tuple[str, ...]] = {
    "all values": (),
    "arguments and outputs": ("argument", "output"),
    "constraints and shard_maps": ("constraint", "shard_map input", "shard_map output"),
    "intermediate values": ("value",),
    "not as asked": (),
    "in conflict": (),
}
"""What can be listed, in the order in which the key goes through it."""

NOT_AS_ASKED = "not as asked"
IN_CONFLICT = "in conflict"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is listed and how: `step` is that of the replay, None for what propagation ended with."""

    shown: str = "all values"
    by_bytes: bool = False
    step: int | None = None


def chosen(
    found: Sequence[ShardedValue], choice: Choice, met: frozenset[int] = frozenset()
) -> list[tuple[int, ShardedValue]]:
    """The values that are listed, with their numbers among all; `met` are the numbers of those in conflict."""
    roles = FILTERS[choice.shown]
    listed = [
        (number, value)
        for number, value in enumerate(found)
        if (not roles or value.role in roles)
        and (choice.shown != NOT_AS_ASKED or value.agrees is False)
        and (choice.shown != IN_CONFLICT or number in met)
    ]
    if choice.by_bytes:
        listed.sort(key=lambda item: -(item[1].replicated_bytes or 0))
    return listed


def rows_of_values(report: Report, listed: Sequence[tuple[int, ShardedValue]], step: int | None) -> list[Row]:
    """A row for each."""
    return [Row(number, _cells(report, value, step)) for number, value in listed]


def _cells(report: Report, value: ShardedValue, step: int | None) -> tuple[Content, ...]:
    got = value.spec or "?" if step is None else spec_after(report, value, step)
    style = "bold $error" if value.agrees is False else "" if step is None or got == value.spec else "$aside"
    return (
        Content.styled(value.role, "$aside"),
        data(value.name),
        data(value.type),
        data(value.asked or ""),
        data(got, style),
        data(value.local_type or ""),
        Content(format_bytes(value.replicated_bytes)),
        data(value.source.text(report.script)),
    )


def spec_after(report: Report, value: ShardedValue, step: int) -> str:
    """The sharding of a value after a step of the propagation."""
    _, flow = propagated(report.program)
    node = None if flow is None else node_of(flow, value)
    sharding = None if flow is None or node is None else replay_of(flow).after(node, step)
    if flow is None or sharding is None:
        return value.spec or "?"
    try:
        return as_spec(from_sdy(sharding, flow.module.meshes).closed())
    except ValueError:
        return "?"
