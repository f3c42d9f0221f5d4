"""Live bytes on a device at each moment of a step: XLA's live ranges, on the cost model's time line.

XLA writes the schedule, a number and a name a line, and after it the first and the last number at which each value is
alive, `    fusion.2{0}:6-7` (xla/service/hlo_live_range.cc). Of a loop both have one round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from ...parsers.hlo import ArrayShape, HloType, Instruction, TupleShape
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from ..report.timeline import Activity
from .host_transfers import HOST, VMEM, memory_space
from .peak_memory import part_of, scheduled_instructions, scheduled_names

_RANGE = re.compile(rb"^ +([^\s{]+)\{([\d,\s]*)\}:(\d{1,9})-(\d{1,9})$", re.MULTILINE)

POINTER = 8

Curve = tuple[tuple[float, int], ...]
"""Seconds, and the bytes that are alive from then on."""


def memory_curve(
    stage: ParsedStage, live_ranges: bytes, activities: tuple[Activity, ...], *, on_tpu: bool = False
) -> Curve:
    """The bytes that are alive, each time that they change; empty where XLA's live ranges are not known."""
    alive = alive_bytes(stage, live_ranges, _elsewhere(on_tpu=on_tpu))
    if not alive:
        return ()
    names = scheduled_names(live_ranges)
    starts = dict(reversed([*_starts(activities, 0.0)]))
    clock, most = 0.0, dict[float, int]()
    for name, size in zip(names, alive, strict=False):
        clock = max(clock, starts.get(name, clock))
        most[clock] = max(most.get(clock, 0), size)
    return tuple(_changes(most))


def peak_instruction(stage: ParsedStage, live_ranges: bytes, *, on_tpu: bool = False) -> Instruction | None:
    """The first instruction at which most is alive; None where XLA's live ranges are not known."""
    alive = alive_bytes(stage, live_ranges, _elsewhere(on_tpu=on_tpu))
    if not alive or stage.hlo is None:
        return None
    name = scheduled_names(live_ranges)[alive.index(max(alive))]
    return scheduled_instructions(stage.hlo, live_ranges).get(name)


def _elsewhere(*, on_tpu: bool) -> tuple[int, ...]:
    return (HOST, VMEM) if on_tpu else (HOST,)


@derived
def alive_bytes(stage: ParsedStage, live_ranges: bytes, elsewhere: tuple[int, ...] = (HOST,)) -> tuple[int, ...]:
    """The bytes that are alive at each instruction of the schedule, before values share buffers.

    Memory spaces that are `elsewhere` do not count.
    """
    scheduled = len(scheduled_names(live_ranges))
    if stage.hlo is None or not scheduled:
        return ()
    known = scheduled_instructions(stage.hlo, live_ranges)
    changes = [0] * (scheduled + 1)
    for match in _RANGE.finditer(live_ranges):
        made_by = known.get(match[1].decode("utf-8", "replace"))
        own = None if made_by is None else part_of(made_by, match[2].decode())
        size = None if own is None else _size(own)
        if own is None or size is None:
            return ()
        if memory_space(own) not in elsewhere and int(match[3]) < scheduled:
            changes[int(match[3])] += size
            changes[min(int(match[4]) + 1, scheduled)] -= size
    return tuple(accumulate(changes[:-1]))


def _size(part: HloType) -> int | None:
    """Bytes of an array, or of the pointers that a tuple is; a token takes none."""
    if isinstance(part, TupleShape):
        return POINTER * len(part.elements)
    return array_type(part).bytes if isinstance(part, ArrayShape) else 0


def _starts(activities: Iterable[Activity], entered: float) -> Iterator[tuple[str, float]]:
    for activity in activities:
        yield activity.instruction.name, entered + activity.start
        yield from _starts(activity.inside, entered + activity.start)


def _changes(sizes: Mapping[float, int]) -> Iterator[tuple[float, int]]:
    before = None
    for moment, size in sizes.items():
        if size != before:
            yield moment, size
        before = size
