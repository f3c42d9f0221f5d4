"""The findings on the screen: what they say, where they lead, and those that are suppressed."""

from __future__ import annotations

from shardscope.inspector.findings.policy import Policy
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.row_table import RowTable
from shardscope.tui.source_pane import SourcePane
from shardscope.tui.stage_pane import StagePane

from ..conftest import SampleCapture
from .conftest import Driver, Opened


async def test_from_a_finding_to_its_equation_and_line(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("missing_reduce_scatter:faulty"), size=(200, 50)) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        assert "1 warning" in driver.text.splitlines()[0]
        await driver.press("f", "home", "enter")
        assert driver.screen.stage == "jaxpr"
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: "psum_invariant[" in view.text_of(view.cursor))
        source = driver.screen.query_one(SourcePane).view
        assert "lax.psum(a @ b" in source.text_of(source.cursor)
        for words in (
            "SS01 missing-reduce-scatter",
            "lax.psum_scatter(a @ b, 'x'",
            "missing_reduce_scatter.py:23 faulty",
        ):
            assert words in driver.text


async def test_a_finding_of_another_stage(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("full_rematerialization:faulty")) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        await driver.press("f", "home", "enter")
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: driver.screen.stage == "hlo" and "all-gather" in view.text_of(view.cursor))


async def test_suppressed_ones_come_last_and_are_not_counted(sample: SampleCapture) -> None:
    policy = Policy(elsewhere=(("*.py", frozenset(("SS01",))),), settings="pyproject.toml")
    app = ShardscopeApp((sample("missing_reduce_scatter:faulty"),), policy=policy)
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: isinstance(app.screen, MainScreen) and driver.screen.linked is not None)
        await driver.press("f", "home", "down")
        table = driver.screen.query_one("#findings", RowTable)
        assert [row.cells[0].plain for row in table.rows] == ["suppressed"]
        assert "Findings  " in driver.text  # and no number
        await driver.until(lambda: "suppressed in pyproject.toml" in driver.text)


async def test_no_findings(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("missing_reduce_scatter:repaired")) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        await driver.press("f", "down", "enter")
        assert driver.screen.query_one("#findings", RowTable).rows == ()
