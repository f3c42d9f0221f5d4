"""Search, go to, zoom, help, save, tables: what the keys do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shardscope.inspector.load import load
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.prompt import Help
from shardscope.tui.row_table import RowTable
from shardscope.tui.stage_pane import SourcePane, StagePane
from shardscope.tui.tables_pane import TABS, TablesPane
from textual.events import Key
from textual.widgets import Input

from tests.sweeps import sampled

from ..conftest import SampleCapture
from .conftest import Opened

pytestmark = pytest.mark.once


async def test_search_in_a_text(sample: SampleCapture, opened: Opened) -> None:
    capture = sample("fsdp_tp:grad")
    text = capture.stages[-1].source.text().splitlines()
    wanted = [number for number, line in enumerate(text) if "reduce-scatter(" in line]
    async with opened(capture) as driver:
        await driver.ready()
        view = driver.screen.query_one(StagePane).view
        await driver.stage("hlo")
        await driver.press("home")
        for key in ("slash", *"reduce-scatter(", "enter", "N", "n"):  # typed at once, while the screen is busy
            driver.app.post_message(Key(key, "/" if key == "slash" else key if len(key) == 1 else None))
        await driver.until(lambda: f"1 of {len(wanted)}" in driver.text)
        assert driver.screen.query_one("#prompt-input", Input).value == "reduce-scatter("
        await driver.press("escape", "home", "slash", *"reduce-scatter(")
        await driver.until(lambda: view.cursor == wanted[0])
        await driver.until(lambda: f"1 of {len(wanted)}" in driver.text)
        await driver.press("enter", "n")
        assert view.cursor == wanted[1]
        await driver.press("N", "N")
        assert view.cursor == wanted[-1]
        assert f"{len(wanted)} of {len(wanted)}" in driver.text
        await driver.press("escape")
        assert view.needle == ""
        assert f"{len(wanted)} of {len(wanted)}" not in driver.text
        assert view.has_focus


async def test_search_ignores_capitals_unless_there_are_some(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await driver.ready()
        await driver.stage("hlo")
        await driver.press("home", "slash", *"entry")
        await driver.until(lambda: " of " in driver.text)
        view = driver.screen.query_one(StagePane).view
        assert "entry" in view.text_of(view.cursor).lower()
        await driver.press("escape", "slash", *"EnTrY")
        await driver.until(lambda: "not found" in driver.text)


async def test_search_in_a_table(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await driver.ready()
        table = driver.screen.query_one("#collectives-table", RowTable)
        await driver.press("3", "slash", *"reduce-sc", "enter")
        await driver.until(lambda: table.rows[table.cursor].cells[1].plain == "reduce-scatter")
        first = table.cursor
        await driver.press("n")
        assert table.cursor > first
        assert table.rows[table.cursor].cells[1].plain == "reduce-scatter"


async def test_go_to_a_line(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await driver.ready()
        await driver.source()
        view = driver.screen.query_one(SourcePane).view
        for typed, line in (("12", 11), ("999999", view.index.count - 1)):
            await driver.press("colon", *typed)
            await driver.until(lambda typed=typed: f"line {typed} of" in driver.text)
            await driver.press("down", "enter")
            await driver.until(lambda line=line: view.cursor == line)


async def test_every_table_opens(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await driver.ready()
        for name, (_, key) in TABS.items():
            await driver.press(key)
            pane = driver.screen.query_one(TablesPane)
            assert pane.chosen == name
            assert pane.shown.has_focus
            await driver.press("down")


async def test_an_argument_in_full(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await driver.ready()
        await driver.press("5", "down")
        assert "params[0][1]" in driver.text
        await driver.until(lambda: "sharding  P(('feats', 'batch'))" in driver.text)


async def test_a_variance_row_leads_to_its_equation(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await driver.ready()
        await driver.press("6", "down", "enter")
        assert driver.screen.stage == "jaxpr"
        assert driver.screen.query_one(StagePane).view.has_focus
        view = driver.screen.query_one(StagePane).view
        assert driver.screen.report is not None
        opened_one = driver.screen.report.variance[1]
        equation = f"{opened_one.value}:{opened_one.type} = {opened_one.primitive}"
        await driver.until(lambda: view.text_of(view.cursor).lstrip().startswith(equation))
        await driver.until(lambda: equation.strip() in driver.text)
        await driver.press("down")
        assert equation not in view.text_of(view.cursor)
        await driver.pilot.pause(0.3)
        assert equation not in view.text_of(view.cursor)


@pytest.mark.parametrize("size", sampled([((80, 24),), ((120, 40),), ((200, 60),)], 1))
async def test_zoom_fills_the_screen(sample: SampleCapture, opened: Opened, size: tuple[int, int]) -> None:
    async with opened(sample("fsdp_tp:loss"), size=size) as driver:
        await driver.ready()
        for kind in MainScreen.PANES:
            pane = driver.screen.query_one(kind)
            for _ in MainScreen.PANES:
                if pane.has_focus_within or pane.has_focus:
                    break
                await driver.press("tab")
            before = pane.region
            await driver.press("z")
            assert (pane.region.width, pane.region.height) == (size[0], size[1] - 1), kind  # the footer stays
            if kind is StagePane:
                await driver.press("slash", *"f32", "enter", "n")
                await driver.until(lambda: re.search(r"/ f32 +\d+ of \d+", driver.text))
                await driver.press("escape")
            await driver.press("escape")
            await driver.until(lambda pane=pane, before=before: pane.region == before)


async def test_help_names_the_keys(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss"), size=(150, 130)) as driver:
        for close in ("escape", "q", "question_mark"):
            await driver.press("question_mark")
            assert isinstance(driver.app.screen, Help)
            for words in ("next match", "unfold", "line up", "one pane on the full screen", "next pane"):
                assert words in driver.text
            await driver.press(close)
            assert not isinstance(driver.app.screen, Help), close


async def test_save(sample: SampleCapture, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    capture = sample("fsdp_tp:loss")
    async with opened(capture) as driver:
        await driver.ready()
        await driver.press("s", "enter")
        await driver.pilot.pause()
        kept = load(str(tmp_path / "loss.shardscope"), None)
        assert [stage.source.data for stage in kept.stages] == [stage.source.data for stage in capture.stages]
        await driver.press("s", *"no/such/folder/x", "enter")
        await driver.until(lambda: "cannot write" in driver.text)


async def test_narrow_screens_show_the_source_in_place_of_the_stage(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss"), size=(80, 24)) as driver:
        await driver.ready()
        assert not driver.screen.query_one("#lower").display
        await driver.source()
        assert driver.screen.query_one(SourcePane).display
        assert not driver.screen.query_one(StagePane).display
        assert "lax.all_gather" in driver.text
        await driver.press("tab", "tab")
        assert driver.screen.query_one("#upper").display
        await driver.stage("hlo")
        assert driver.screen.query_one(StagePane).display
        assert all(len(line) <= 80 for line in driver.text.splitlines())
