"""What each device holds, on the screen."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.report.places import ProbePlace
from shardscope.samples.catalogue import samples
from shardscope.tui.row_table import RowTable
from shardscope.tui.stage_pane import SourcePane, StagePane

from .conftest import Opened

pytestmark = pytest.mark.once


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
        table = driver.screen.query_one("#sites", RowTable)
        await driver.until(lambda: len(table.rows) == 3)
        assert table.rows[2].cells[3].plain == "4→1"
        await driver.press("end")
        await driver.until(lambda: "AFTER" in driver.text)
        for line in ("device 0 i=0", "[3 1 4 1]", "device 3 i=3", "[9 7 1 2]", "devices 0–3", "[22 20 12 17]"):
            assert line in driver.text
        assert next("AFTER" in line for line in driver.text.splitlines() if "BEFORE" in line)
        assert "same colour = same value" in driver.text


async def test_from_a_value_to_its_equation_and_line(pipeline: Capture, opened: Opened) -> None:
    async with opened(pipeline) as driver:
        await driver.until(lambda: driver.screen.report is not None and driver.screen.report.probes)
        await driver.press("7")
        report = driver.screen.report
        assert report is not None
        number = next(
            n
            for n, v in enumerate(report.probes)
            if v.primitive == "ppermute" and v.probe.iteration == (3,) and v.probe.when == "after"
        )
        table = driver.screen.query_one("#sites", RowTable)
        row = next(n for n, row in enumerate(table.rows) if "ppermute" in row.cells[1].plain)
        await driver.press(*["down"] * row, *["full_stop"] * 3)
        assert driver.screen.selected == ProbePlace(number)
        await driver.press("enter")
        await driver.until(lambda: getattr(driver.screen.linked, "place", None) == ProbePlace(number))
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: "ppermute[" in view.text_of(view.cursor))
        source = driver.screen.query_one(SourcePane).view
        assert "lax.ppermute" in source.text_of(source.cursor)
        assert "iteration" in driver.text
