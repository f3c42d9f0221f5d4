"""The time line on the screen: a tab where there are figures for the device, whose rows lead to their collectives."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective
from shardscope.tui.row_table import RowTable
from shardscope.tui.stage_pane import StagePane
from shardscope.tui.tab_tables import tab_tables

from .conftest import Opened
from .test_looks import kept, with_everything
from .test_targets import on_tpus

pytestmark = pytest.mark.once


async def test_a_row_leads_to_its_collective(opened: Opened) -> None:
    async with opened(on_tpus(kept())) as driver:
        await driver.ready()
        assert "i Time line(" in driver.text
        await driver.press("i")
        await driver.until(lambda: "Time line of a step on TPU v5p (cost model)" in driver.text)
        table = driver.screen.query_one("#timeline-table", RowTable)
        assert table.has_focus
        number = next(n for n, row in enumerate(table.rows) if "reduce-scatter" in row.cells[4].plain)
        for _ in range(number):
            await driver.press("down")
        selected = driver.screen.selected
        assert isinstance(selected, Collective)
        assert (selected.kind, selected.stage) == ("reduce-scatter", "hlo")
        await driver.press("enter")
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: view.has_focus and "reduce-scatter(" in view.text_of(view.cursor))
        assert selected.name in view.text_of(view.cursor)
        await driver.press("i")  # from a text, too
        await driver.until(lambda: table.has_focus)


async def test_no_tab_without_figures(opened: Opened) -> None:
    async with opened(kept()) as driver:
        await driver.ready()
        assert "Time line" not in driver.text
        await driver.press("i")
        await driver.until(lambda: "compile for a target" in driver.text)


@pytest.mark.parametrize("shown", [with_everything(kept()), on_tpus(kept())], ids=["everything", "target"])
def test_every_row_selects_something(shown: Capture) -> None:
    """Beside the row of the cursor there is never what was selected before."""
    for table in tab_tables(inspect(shown)).values():
        assert None not in [table.selection(row.value) for row in table.rows], table.id
