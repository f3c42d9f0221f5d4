"""What a device does when: it agrees with the cost of the whole, and no device does two things at once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.output_file import OutputError
from shardscope.inspector.cost.host_transfers import HOST, VMEM
from shardscope.inspector.cost.memory_curve import alive_bytes
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect, timeline
from shardscope.inspector.render import perfetto
from shardscope.inspector.render.html import report_page
from shardscope.inspector.render.html import timeline as drawn
from shardscope.inspector.render.perfetto import report_to_perfetto
from shardscope.inspector.render.tables.communication import communication
from shardscope.inspector.render.tables.cost import cost as cost_table
from shardscope.inspector.render.tables.timeline import timeline_table
from shardscope.inspector.report import Report
from shardscope.inspector.report.timeline import Timeline

from tests.conftest import SampleCapture

from .test_collectives import torus

FUNCTIONS = ("transformer:train_step", "ring_attention:grad", "pipeline:loss")
MOST = 100_000
SLACK = 1e-9


def on_tpu(capture: Capture) -> Report:
    """The report of a sample as if its devices were a TPU's."""
    assert capture.subject is not None
    places = torus("v5p", 2, 2, 2).devices[: capture.subject.device_count]
    return inspect(replace(capture, subject=replace(capture.subject, device_kind="TPU v5", devices=places)))


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 does not say what is alive")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_of_samples(sample: SampleCapture, function: str) -> None:
    report = on_tpu(sample(function))
    found = timeline(report.program)
    assert found is not None
    has_the_peak_of_xla(found, report)
    adds_up_to_the_cost(found, report)
    computes_or_waits(found)
    assert report_page(report).count('id="timeline"') == 1
    slices_are_inside_of_each_other_or_apart(json.loads(report_to_perfetto(report))["traceEvents"])


def test_one_total_is_said_of_a_step(sample: SampleCapture) -> None:
    """Where the bytes of a kernel bound the step, and its time is not known, the time line has that bound too."""
    report = on_tpu(sample("ring_attention:grad"))
    found = timeline(report.program)
    assert found is not None
    assert report.cost is not None
    for cost in (report.cost, replace(report.cost, total=3 * found.total, unknown=("the time of kernel.1",))):
        headings = [table(replace(report, cost=cost)).heading for table in (timeline_table, cost_table)]
        (said, *_), (costs, *_) = (re.findall(r"(?:at least )?[\d.,]+ [mµn]?s", heading) for heading in headings)
        assert said == costs


def test_times_of_strategies_that_overlap_are_said_to(sample: SampleCapture) -> None:
    report = on_tpu(sample("transformer:train_step"))
    assert report.cost is not None
    added = sum(each.seconds or 0 for each in report.communication)
    for total in (added / 2, added * 2):
        heading = communication(replace(report, cost=replace(report.cost, total=total))).heading
        assert ("overlap" in heading) is (total < added)


def has_the_peak_of_xla(found: Timeline, report: Report) -> None:
    """XLA lists what is alive at the peak of the same schedule, after it."""
    assert report.capture.peak is not None
    text, stage = report.capture.peak.data.decode(), report.program.stage("hlo")
    peak = re.search(r"Live ranges at (\d+) \(peak\):\n(.*)", text, re.DOTALL)
    assert peak is not None
    assert stage is not None
    alive = alive_bytes(stage, report.capture.peak.data)
    assert alive[int(peak[1])] == sum(map(int, re.findall(r"\}: (\d+) bytes", peak[2]))) > 0
    subject, memory = report.capture.subject, report.capture.memory
    assert subject is not None
    if subject.platform == "tpu":
        # XLA's list has what is in VMEM; its figure for the device's memory has not, and has the code.
        assert memory is not None
        assert found.peak <= (memory.peak or 0) - (memory.code or 0) <= max(alive)
    else:
        assert found.peak == max(alive)
    names = [match[2] for match in re.finditer(r"^ +(\d+):(\S+)$", text, re.MULTILINE)]
    in_device = alive_bytes(stage, report.capture.peak.data, (HOST, VMEM) if subject.platform == "tpu" else (HOST,))
    assert found.at_peak is not None
    assert found.peak == in_device[names.index(found.at_peak.name)]
    # XLA's moment is that of all memories together, and ends values before it begins others.
    assert in_device[int(peak[1])] < found.peak or names.index(found.at_peak.name) <= int(peak[1])
    moments = [start for start, _ in found.memory]
    assert all(before < after for before, after in pairwise(moments))
    assert 0 <= moments[0] <= moments[-1] <= found.total
    table = timeline_table(report)
    assert "█" in str(table.rows[0].cells)
    assert None not in [table.selection(row.value) for row in table.rows]
    counted = [
        each["args"]["bytes"] for each in json.loads(report_to_perfetto(report))["traceEvents"] if each["ph"] == "C"
    ]
    assert counted == [size for _, size in found.memory]


def adds_up_to_the_cost(found: Timeline, report: Report) -> None:
    assert report.cost is not None
    assert report.cost.total >= found.total >= max(each.end for each in found.activities) * (1 - SLACK)
    exposed = sum(moment.activity.exposed for moment in found.unrolled(MOST))
    assert exposed == pytest.approx(report.cost.waiting) == pytest.approx(found.exposed)
    sent = sum(each.wire_bytes or 0 for moment in found.unrolled(MOST) for each in moment.activity.collectives)
    assert sent == sum((c.wire_bytes or 0) * (c.executions or 1) for c in report.collectives if c.stage == "hlo")


def computes_or_waits(found: Timeline) -> None:
    """A device does one thing at a time."""
    busy = []
    for moment in found.unrolled(MOST):
        activity, end = moment.activity, moment.end
        if activity.lane == "compute" and not activity.inside:
            busy.append((moment.start, end))
        elif activity.exposed:
            busy.append((end - activity.exposed, end))
    assert all(one[1] <= other[0] + found.total * SLACK for one, other in pairwise(sorted(busy)))


def slices_are_inside_of_each_other_or_apart(events: list[dict[str, Any]]) -> None:
    """What trace viewers ask of the slices of one thread, in whole nanoseconds."""
    threads: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        assert event["cat"]
        if event["ph"] == "X":
            threads.setdefault(event["tid"], []).append((round(event["ts"] * 1e3), -round(event["dur"] * 1e3)))
    assert len(threads) >= 2
    for slices in threads.values():
        around: list[int] = []
        for start, length in sorted(slices):
            while around and around[-1] <= start:
                around.pop()
            assert not around or start - length <= around[-1]
            around.append(start - length)


@pytest.mark.parametrize("beyond", [0, 1])
def test_what_is_left_out_of_a_long_step_is_said(
    sample: SampleCapture, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    report = on_tpu(sample("ring_attention:grad"))
    found = timeline(report.program)
    assert found is not None
    most = len(list(found.unrolled(MOST))) - beyond
    monkeypatch.setattr(perfetto, "MAX_EVENTS", most)
    monkeypatch.setattr(drawn, "MAX_ACTIVITIES", most)
    events = json.loads(perfetto.report_to_perfetto(report))["traceEvents"]
    labels = [event["args"]["labels"] for event in events if event["name"] == "process_labels"]
    said = f"only the first {most:,} activities"
    assert [said in label for label in labels] == [True] * beyond
    assert (said in report_page(report)) is bool(beyond)
    assert sum(event["ph"] == "X" and event["name"] != "waits" for event in events) == most


def test_devices_without_figures_have_none(sample: SampleCapture) -> None:
    report = inspect(Program(sample(FUNCTIONS[0])))
    with pytest.raises(OutputError, match="--target"):
        report_to_perfetto(report)
    assert "--target" in timeline_table(report).empty_text


def test_bars_together_take_as_long_as_each(sample: SampleCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for each activity, a bar has no more time in it than they have."""
    report = on_tpu(sample("transformer:train_step"))
    found = timeline(report.program)
    assert found is not None
    bars = list(drawn._bars(found, report, {}))
    for most in (10_000, 100):
        monkeypatch.setattr(drawn, "MAX_BARS", most)
        few = drawn._few(bars, found.total)
        assert len(few) <= most
        for lane in {bar.lane for bar in bars} - {"loops"}:
            each, together = ([bar for bar in those if bar.lane == lane] for those in (bars, few))
            assert sum(bar.busy for bar in together) == pytest.approx(sum(bar.end - bar.start for bar in each))
            assert sum(bar.count for bar in together) == len(each)
            assert all(bar.busy <= (bar.end - bar.start) * (1 + SLACK) for bar in together)


@pytest.mark.parametrize("most", [1, 3, 7, 8])
@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("style", ["loop", "compute"])
def test_there_are_no_more_bars_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, most: int, lanes: int, style: str
) -> None:
    """Whatever they are: loops are not put together, and the first of a lane has none to go with."""
    monkeypatch.setattr(drawn, "MAX_BARS", most)
    bars = [drawn.Bar(f"lane {n % lanes}", style, n, n + 0.5, "", "") for n in range(8)]
    few = drawn._few(bars, 1.0)
    assert len(few) == most
    drawn_ones = [n for n in range(8) if n < most or (style != "loop" and n % lanes < most)]
    assert sum(bar.count for bar in few) == len(drawn_ones)
