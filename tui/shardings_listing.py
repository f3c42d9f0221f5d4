"""Which shardings are listed, and as of which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..inspector.render.table import Table
from ..inspector.render.tables.shardings import values_table
from ..inspector.report import Report, ShardedValue
from ..inspector.shardings.replay import replay_of
from ..inspector.shardings.spelled import as_spec, from_sdy
from ..inspector.shardings.table import node_of, propagated

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


def values_at(report: Report, listed: Sequence[tuple[int, ShardedValue]], step: int | None = None) -> Table:
    """The values that are listed, as they are at a step of the replay."""
    spec = None if step is None else lambda value: spec_after(report, value, step)
    return values_table(report, (value for _, value in listed), spec)


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
