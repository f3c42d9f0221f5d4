"""What is drawn, placed and shortened, against geometry, numpy and counting."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardscope.inspector.capture.file import load
from shardscope.inspector.capture.model import Capture, Device, Stage
from shardscope.inspector.cost.places import Machine
from shardscope.inspector.dataflow.mlir import dataflow_of
from shardscope.inspector.findings.rules import ss17_slow_link_collective as ss17
from shardscope.inspector.ir.program import Program
from shardscope.inspector.load import load_bytes
from shardscope.inspector.pipeline import inspect, stage_summaries
from shardscope.inspector.render import why_lines
from shardscope.inspector.render.html.mesh import _places, _ways
from shardscope.inspector.render.html.tables import MAX_ROWS, table_section
from shardscope.inspector.render.table import Column, Row, Table
from shardscope.inspector.render.tables.collectives import causes
from shardscope.inspector.render.text.tables import subject_lines
from shardscope.inspector.report import Report
from shardscope.inspector.report.places import ProbePlace, StagePlace
from shardscope.inspector.selection.selection import linked
from shardscope.inspector.targets.chips import chips_of
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.parsers.source import Source

from tests.findings.well_formed import assert_well_formed
from tests.sweeps import examples

KEPT = Path(__file__).parents[1] / "command" / "approved"
SIDE, GAP = 20, 4
NUMBER = r"(-?[\d.]+)"


def test_arrows_of_a_mesh() -> None:
    """From the middle of one square to that of the other, each way on a side of its own, as far from the chord."""
    mesh = MeshSyntax((("x", 3), ("y", 4)))
    places = _places(mesh, SIDE, GAP)
    pairs = list(itertools.product(range(mesh.size), repeat=2))
    drawn = list(_ways(places, [*pairs, (0, mesh.size), (mesh.size, 0)], SIDE))
    assert len(drawn) == mesh.size * (mesh.size - 1)
    for (source, target), path in zip([pair for pair in pairs if pair[0] != pair[1]], drawn, strict=True):
        found = re.search(rf'd="M{NUMBER} {NUMBER}Q{NUMBER} {NUMBER} {NUMBER} {NUMBER}"', path)
        assert found
        start, bend, end = (complex(*map(float, found.groups()[at : at + 2])) for at in (0, 2, 4))
        middle = SIDE / 2 * (1 + 1j)
        assert (start, end) == (complex(*places[source]) + middle, complex(*places[target]) + middle)
        off = (bend - (start + end) / 2) / (end - start)  # as the chord sees it: along it, and to its left
        assert off == pytest.approx(-0.25j)
        dot = re.search(rf'cx="{NUMBER}" cy="{NUMBER}" r="(\d+)"', path)
        assert dot
        _, y = places[target]
        assert float(dot[1]) == end.real
        assert y <= float(dot[2]) - float(dot[3]) <= float(dot[2]) + float(dot[3]) <= y + SIDE


@settings(max_examples=examples(20, 60), deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_another_order_of_the_axes_places_devices_as_numpy_does(sizes: list[int], data: Any) -> None:
    """The last axis of the order is that of devices which lie next to each other."""
    count = math.prod(sizes)
    order = tuple(data.draw(st.permutations(range(len(sizes)))))
    partitions = tuple(data.draw(st.permutations(range(count))))
    devices = [Device(count - number, (), slice=number // 4, process=number // 2) for number in range(count)]
    machine = Machine(chips_of("tpu")["v5p"], tuple(data.draw(st.permutations(devices))), ())
    mesh = MeshSyntax(tuple((f"a{number}", size) for number, size in enumerate(sizes)), partitions)
    seen: list[Machine] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ss17, "estimate", lambda each, other: seen.append(other))
        report = load_kept("manual")
        ss17._placed(report.collectives[:1], mesh, order, machine)
    beside = np.lexsort([[getattr(each, name) for each in devices] for name in ("id", "process", "slice")])
    laid_out = beside.reshape([sizes[axis] for axis in order]).transpose(np.argsort(order)).ravel()
    [other] = seen
    assert [other.devices[partition] for partition in partitions] == [devices[number] for number in laid_out]


@lru_cache
def load_kept(name: str) -> Report:
    return inspect(load(KEPT / f"{name}.capture"))


@pytest.mark.parametrize("length", [1, 2, 23, 24, 25, 40])
def test_long_ways_are_shortened_in_the_middle(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    report = load_kept("manual")
    value = next(each for each in report.variance if each.entered)
    asked = SimpleNamespace(way=lambda value, entry: [0] * length)
    steps = itertools.count()
    monkeypatch.setattr(why_lines, "_step", lambda each, report: f"step {next(steps)}")
    one = replace(value, entered=value.entered[:1], left=())
    report = SimpleNamespace(program=report.program, variance=[one], script=None, on_demand=asked)
    _, *lines = why_lines.entry_lines(report, value.equation)  # type: ignore[arg-type]
    whole = [f"step {number}" for number in range(length)]
    assert lines == (whole if length <= 24 else [*whole[:12], f"  … {length - 24} more", *whole[-12:]])


@pytest.mark.parametrize("name", ["embedded", "exchange", "gathered_twice", "rare", "rounds", "typed"])
def test_a_collective_has_its_lines_wherever_it_is_selected(name: str) -> None:
    """In its text, at either end of it, or in a list."""
    report = load_kept(name)
    for stage in report.program.stages:
        for each in report.on_demand.collectives(stage):
            for offset in (each.span.start, each.span.end - 1):
                found = linked(report, StagePlace(stage.name, offset), stage)
                assert found.collective == each
                assert found.stack == each.source.stack == linked(report, each, stage).stack


def test_a_probed_value_is_at_its_equation() -> None:
    """All of it, in the text of the jaxpr."""
    report = load_kept("manual")
    stage, text = report.program.stage("jaxpr"), report.program.jaxpr
    assert stage is not None
    assert text is not None
    spans = {place.id: place.span for place in text.equations}
    shown = [
        (each.probe.path[-1], linked(report, ProbePlace(n), stage).spans)
        for n, each in enumerate(report.probes)
        if each.probe.path
    ]
    assert shown
    assert all(found == (spans[equation],) for equation, found in shown)


@pytest.mark.parametrize("name", ["embedded", "rare", "rounds", "target"])
def test_the_row_at_a_place_is_the_smallest_around_it(name: str) -> None:
    stage = load_kept(name).program.stage("stablehlo")
    assert stage is not None
    flow = dataflow_of(stage)
    assert flow is not None
    ends = [(row.start, max(span.end for span in row.own)) for row in flow.rows]
    for offset in sorted({place + step for each in ends for place in each for step in (-1, 0, 1)}):
        around = [number for number, (start, end) in enumerate(ends) if start <= offset < end]
        found = flow.row_at(offset)
        assert found == min(around, key=lambda number: ends[number][1] - ends[number][0], default=None)


@pytest.mark.parametrize("name", ["embedded", "exchange", "gathered_twice", "manual", "rare", "rounds", "target"])
def test_findings_of_kept_captures_are_well_formed(name: str) -> None:
    assert_well_formed(load_kept(name))


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_long_tables_of_a_page_say_what_they_leave_out(more: int) -> None:
    count = MAX_ROWS + more
    page = table_section(Table("t", "T", (Column("n"),), tuple(Row((f"row{number}",)) for number in range(count))))
    assert len(re.findall(r">row\d+<", page)) == min(count, MAX_ROWS)
    assert re.findall(r"and (\d+) more", page) == ([str(more)] if more > 0 else [])


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_lines_of_a_stage(end: str) -> None:
    text = "HloModule m\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4] parameter(0)\n}" + end
    program = Program(Capture(stages=(Stage("hlo", "hlo", Source("m", text.encode())),), complete=True))
    assert [each.lines for each in stage_summaries(program)] == [len(text.splitlines())]


def test_first_lines_are_sentences() -> None:
    """What follows `No collectives.` begins with one capital letter; the same words without it with none."""
    text = "HloModule m\n\nENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4] parameter(0)\n}\n"
    stage = Stage("hlo", "hlo", Source("m", text.encode()), 0.5)
    report = inspect(Capture(stages=(stage,), complete=True))
    _, line = subject_lines(report)
    assert str(line) == "No collectives. Compiled in 500 ms"


UNKNOWN_SIZES = """HloModule m, is_scheduled=true, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%body (s: (f32[8], pred[])) -> (f32[8], pred[]) {
  %s = (f32[8], pred[]) parameter(0)
  %a = f32[8] get-tuple-element(%s), index=0
  %p = pred[] get-tuple-element(%s), index=1
  %once = f32[8] all-reduce(%a), GROUPS, to_apply=%add
  %twice = f32[8] all-gather(%once), GROUPS, dimensions={0}
  %twice.1 = f32[8] all-to-all(%twice), GROUPS, dimensions={0}
  ROOT %t = (f32[8], pred[]) tuple(%twice.1, %p)
}

%condition (s: (f32[8], pred[])) -> pred[] {
  %s = (f32[8], pred[]) parameter(0)
  ROOT %p = pred[] get-tuple-element(%s), index=1
}

ENTRY %main (a: f32[8], b: f32[64], p: pred[]) -> ((f32[8], pred[]), f32[8], f32[64]) {
  %a = f32[8] parameter(0)
  %b = f32[64] parameter(1)
  %p = pred[] parameter(2)
  %t = (f32[8], pred[]) tuple(%a, %p)
  %w = (f32[8], pred[]) while(%t), condition=%condition, body=%body
  %small = f32[8] all-reduce(%a), GROUPS, to_apply=%add
  %large = f32[64] all-reduce(%b), GROUPS, to_apply=%add
  ROOT %r = ((f32[8], pred[]), f32[8], f32[64]) tuple(%w, %small, %large)
}
"""


def test_causes_of_unknown_bytes_come_last_as_the_text_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often the loop runs is not known: what of it sends more is not, either."""
    monkeypatch.setitem(causes.__globals__, "_lines", lambda each, report: (each.name.partition(".")[0],))
    report = inspect(load_bytes("m", UNKNOWN_SIZES.replace("GROUPS", "replica_groups={{0,1,2,3}}").encode()))
    assert [row.cells[1] for row in causes(report).rows] == ["large", "small", "once", "twice"]
