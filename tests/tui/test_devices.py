"""What each device holds, on the screen."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.selection.selection import ProbePlace
from shardscope.samples.catalogue import samples
from shardscope.tui.row_table import RowTable
from shardscope.tui.source_pane import SourcePane
from shardscope.tui.stage_pane import StagePane

from .conftest import Opened


def ran(function: str) -> Capture:
    name, _, attribute = function.partition(":")
    path = next(sample.path for sample in samples() if sample.name == name)
    *_, last = capture(Request(f"{path}:{attribute}"))
    assert last.complete
    return last


@pytest.fixture(scope="module")
def pipeline() -> Capture:
    return ran("pipeline:loss")


async def test_before_and_after_device_by_device(opened: Opened) -> None:
    async with opened(ran("psum:psum"), size=(170, 60)) as driver:
        await driver.until(lambda: driver.screen.report is not None and driver.screen.report.probes)
        await driver.press("7")
        table = driver.screen.query_one("#devices", RowTable)
        await driver.until(lambda: len(table.rows) == 4)
        assert [row.cells[0].plain for row in table.rows] == ["argument", "output", "before", "after"]
        assert table.rows[3].cells[6].plain == "all equal"
        await driver.press("end")
        await driver.until(lambda: "AFTER" in driver.text)
        for line in ("device 0  i=0", "[3 1 4 1]", "device 3  i=3", "[9 7 1 2]", "[22 20 12 17]"):
            assert line in driver.text
        assert "equal values have one colour" in driver.text


async def test_from_a_value_to_its_equation_and_line(pipeline: Capture, opened: Opened) -> None:
    async with opened(pipeline) as driver:
        await driver.until(lambda: driver.screen.report is not None and driver.screen.report.probes)
        await driver.press("7")
        report = driver.screen.report
        assert report is not None
        number = next(n for n, v in enumerate(report.probes) if v.primitive == "ppermute" and v.probe.iteration == (3,))
        await driver.press(*["down"] * number, "enter")
        await driver.until(lambda: getattr(driver.screen.linked, "place", None) == ProbePlace(number))
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: "ppermute[" in view.text_of(view.cursor))
        source = driver.screen.query_one(SourcePane).view
        assert "lax.ppermute" in source.text_of(source.cursor)
        assert "iteration" in driver.text
