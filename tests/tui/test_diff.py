"""The screen of a diff: both texts linked, and a table of what differs."""

from __future__ import annotations

import jax
import pytest
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.pipeline import inspect
from shardscope.tui.app import ScreenApp
from shardscope.tui.diff_screen import DiffScreen
from shardscope.tui.row_table import RowTable
from shardscope.tui.text_view import TextView

from tests.conftest import SampleCapture

from .conftest import Driver

pytestmark = pytest.mark.once


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older JAX compiles the two otherwise")
async def test_both_texts_follow_the_table_and_each_other(sample: SampleCapture) -> None:
    reports = [inspect(sample(f"missing_reduce_scatter:{name}")) for name in ("faulty", "repaired")]
    app = ScreenApp(DiffScreen, diff(*reports))
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "became reduce-scatter" in driver.text)
        before, after = (app.screen.query_one(f"#diff-{side}", TextView) for side in ("before", "after"))
        await driver.until(lambda: " all-reduce(" in before.text_of(before.cursor))
        assert " reduce-scatter(" in after.text_of(after.cursor)
        assert "partition-id" in "".join(before.text_of(line) for line in before.marks)
        assert {line: sign for line, (sign, _) in after.marks.items()} == {after.cursor: "~"}
        assert {sign for sign, _ in before.marks.values()} == {"~", "−"}
        assert "gone: SS01" in driver.text
        for size in ((80, 24), (60, 14), (100, 30)):  # what is looked at stays in view
            await pilot.resize_terminal(*size)
            await driver.until(lambda size=size: app.screen.size == size)
            await driver.until(
                lambda: all(v.region.height <= 1 or v.cursor in [row.line for row in v.rows] for v in (before, after))
            )
        # A fusion that both have: the other text goes there, too.
        line = next(line for line in before.linked if "fusion(" in before.text_of(line))
        before.focus()
        before.move_to(line)
        await driver.until(lambda: "fusion(" in after.text_of(after.cursor))
        assert app.screen.query_one(RowTable).rows[0].key == 0
        await driver.press("question_mark")
        await driver.until(lambda: "in the table" in driver.text)
        await driver.press("escape", "q")


async def test_search_and_zoom(sample: SampleCapture) -> None:
    """As on the main screen: in the text or the table that has the focus."""
    reports = [inspect(sample(f"fsdp_tp:{name}")) for name in ("loss", "grad")]
    app = ScreenApp(DiffScreen, diff(*reports))
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "search" in driver.text.splitlines()[-1])
        table, after = app.screen.query_one(RowTable), app.screen.query_one("#diff-after", TextView)
        await driver.press("slash", *"memory", "enter")
        await driver.until(lambda: "memory" in table.rows[table.cursor].cells[1].plain)
        first = table.cursor
        await driver.press("n")
        assert table.cursor > first
        await driver.press("escape", "2", "home", "slash", *"ENTRY")
        await driver.until(lambda: "1 of 1" in driver.text)
        assert "ENTRY" in after.text_of(after.cursor)
        await driver.press("enter", "escape", "g", "g", "down", "down")
        assert after.cursor == 2
        await driver.press("z")
        assert after.size.width > 140
        await driver.press("escape", "3")
        assert table.has_focus


async def test_nothing_differs(sample: SampleCapture) -> None:
    report = inspect(sample("missing_reduce_scatter:faulty"))
    app = ScreenApp(DiffScreen, diff(report, report))
    async with app.run_test(size=(80, 24)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "no change in communication" in driver.text)
        await driver.press("tab", "down")
