"""What can be copied, from a table and from a text: chosen by its number."""

from __future__ import annotations

import re

import pytest
from shardscope.inspector.capture.model import Value
from shardscope.inspector.render.why_lines import line_variance
from shardscope.inspector.report.places import SourceLine, StagePlace
from shardscope.inspector.shardings.table import values
from shardscope.tui.reading_screen import ChoiceScreen
from shardscope.tui.stage_pane import SourcePane, StagePane

from .conftest import Driver, Opened
from .test_looks import kept

pytestmark = pytest.mark.once


async def choices(driver: Driver) -> list[str]:
    await driver.press("y")
    await driver.until(lambda: isinstance(driver.app.screen, ChoiceScreen))
    screen = driver.app.screen
    assert isinstance(screen, ChoiceScreen)
    return [name for name, _ in screen._choices]


def stage_text(name: str) -> str:
    stage = kept().stage(name)
    assert stage is not None
    return stage.source.text()


async def test_from_tables_and_texts(opened: Opened) -> None:
    async with opened(kept()) as driver:
        await driver.ready()
        await driver.press("5")
        first = driver.screen.selected
        assert isinstance(first, Value)
        names = await choices(driver)
        await driver.press(str(names.index("the requested PartitionSpec") + 1))
        await driver.until(lambda: driver.app.clipboard == first.spec)
        # A collective of the text: its line and its groups.
        await driver.press("3")
        await driver.stage("hlo")
        await driver.press("up", "down")
        await driver.until(lambda: driver.screen.linked is not None and driver.screen.linked.collective is not None)
        names = await choices(driver)
        assert names[0] == "the line"
        await driver.press(str(names.index("the replica groups") + 1))
        await driver.until(lambda: driver.app.clipboard.startswith("{{0,"))
        # The text that has the focus comes first, whatever is selected elsewhere.
        await driver.source()
        view = driver.screen.query_one(SourcePane).view
        names = await choices(driver)
        assert (names[0], names[-1]) == ("the line", f"all {view.index.count:,} lines")
        await driver.press("1")
        await driver.until(lambda: driver.app.clipboard == view.text_of(view.cursor).strip())
        # A value, in the text in which Shardy wrote its sharding.
        assert driver.screen.report is not None
        value = next(each for each in values(driver.screen.report.program) if not each.manual)
        await driver.stage(value.stage)
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: view.source.text() == stage_text(value.stage))
        view.move_to(view.index.line_at(value.span.start))
        await driver.until(lambda: isinstance(driver.screen.selected, StagePlace))
        names = await choices(driver)
        await driver.press(str(names.index("the actual PartitionSpec") + 1))
        await driver.until(lambda: driver.app.clipboard == value.spec)


async def test_a_search_selects_the_line_of_the_cursor(opened: Opened) -> None:
    async with opened(kept()) as driver:
        await driver.ready()
        await driver.source()
        view = driver.screen.query_one(SourcePane).view
        await driver.press("slash", *view.text_of(view.cursor).strip()[:12], "enter")
        await driver.until(lambda: isinstance(driver.screen.selected, SourceLine))
        place = driver.screen.selected
        assert isinstance(place, SourceLine)
        assert place.line == view.cursor + 1
        report = driver.screen.report
        assert report is not None
        lines = list(line_variance(report, place.file, place.line))
        here = [value for value in report.variance if value.source.line == place.line]
        assert [line.partition(" = ")[0] for line in lines] == [value.value for value in here]
        for line, value in zip(lines, here, strict=True):
            axes = re.search(r"varies over ([^;]*)", line)
            typed = re.search(r"V:\(?([^)}]*)", str(value.type))
            assert axes is not None
            assert axes[1].replace(" ", "") == (typed[1] if typed else "none")
