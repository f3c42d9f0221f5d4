"""The time line round by round, and the rows of its links, against a simulation in small steps."""

from __future__ import annotations

import random

import pytest
from shardscope.inspector.report import SourcePosition
from shardscope.inspector.report.timeline import Activity, Timeline
from shardscope.parsers.hlo import Instruction, parse_module
from shardscope.parsers.source import Source


def some_instruction(metadata: str = "") -> Instruction:
    text = f"HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {{\n  ROOT %p = f32[] parameter(0){metadata}\n}}\n"
    module = parse_module(Source("m", text.encode()))
    found = module.instruction("main", "p")
    assert found is not None
    return found


INSTRUCTION = some_instruction()


def activities(chance: random.Random, depth: int) -> tuple[tuple[Activity, ...], int]:
    """Some activities in the order of their starts, and how long all of them take."""
    found, start, latest = [], 0, 0
    for _ in range(chance.randrange(1, 6)):
        rounds = chance.choice([1, 2, 3, None]) if depth and chance.random() < 0.3 else 1
        inside, length = activities(chance, depth - 1) if depth and (rounds != 1 or chance.random() < 0.3) else ((), 0)
        seconds = length * (rounds or 1) if inside else chance.randrange(1, 6)
        lane = "compute" if inside else chance.choice(["compute", "links"])
        found.append(Activity(lane, INSTRUCTION, start, start + seconds, rounds=rounds, inside=inside))  # type: ignore[arg-type]
        latest = max(latest, start + seconds)
        start = latest if inside else start + chance.randrange(3)
    return tuple(found), latest


def written_out(found: tuple[Activity, ...], begin: int) -> list[tuple[Activity, float, float]]:
    """Each activity with its seconds in the step, a loop followed by all of its rounds."""
    moments = []
    for each in found:
        moments.append((each, begin + each.start, begin + each.end))
        for number in range((each.rounds or 1) if each.inside else 0):
            length = (each.end - each.start) // (each.rounds or 1)
            moments += written_out(each.inside, begin + int(each.start) + number * length)
    return moments


@pytest.mark.parametrize("seed", range(40))
def test_unrolled(seed: int) -> None:
    found, total = activities(random.Random(seed), 2)
    line = Timeline("chip", total, 0.0, found)
    moments = list(line.unrolled(10_000))
    assert [(each.activity, each.start, each.end) for each in moments] == written_out(found, 0)
    for most in (0, 1, 3):
        assert list(line.unrolled(most)) == moments[:most]
    for most in (0, len(moments) - 1, len(moments), len(moments) + 1):
        assert line.is_longer(most) is (len(moments) > most)
    sent = [each for each in moments if each.activity.lane == "links"]
    for number, each in enumerate(sent):
        beside = {other.beside for other in sent[:number] if other.end > each.start}
        free = next(row for row in range(number + 1) if row not in beside)
        assert each.beside == free
    assert all(each.beside == 0 for each in moments if each.activity.lane == "compute")


def test_rows_of_transfers_at_once() -> None:
    """The first free row; one that ends makes room in its own row alone."""
    times = (0, 9), (0, 2), (0, 20), (2, 9), (3, 4)
    line = Timeline("chip", 20.0, 0.0, tuple(Activity("links", INSTRUCTION, *each) for each in times))
    assert [each.beside for each in line.unrolled(9)] == [0, 1, 2, 1, 3]


@pytest.mark.parametrize(("memory", "peak"), [((), 0), (((0.0, 5), (1.0, 9), (2.0, 4)), 9)])
def test_the_most_memory_at_once(memory: tuple[tuple[float, int], ...], peak: int) -> None:
    assert Timeline("chip", 3.0, 0.0, (), memory).peak == peak


def test_where_an_activity_comes_from() -> None:
    assert Activity("compute", INSTRUCTION, 0.0, 1.0).source == SourcePosition()
    metadata = ', metadata={op_name="f" source_file="m.py" source_line=7}'
    placed = some_instruction(metadata)
    assert Activity("compute", placed, 0.0, 1.0).source.text() == "m.py:7"
