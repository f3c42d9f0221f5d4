"""What the palette finds beside keys and lines: stages and findings, and that choosing one leads there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.load import load
from shardscope.inspector.report import Finding
from shardscope.parsers.source import Source
from shardscope.tui.app import ThemedApp
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.row_table import RowTable
from shardscope.tui.stage_pane import StagePane
from textual.command import CommandList
from textual.screen import Screen

from .conftest import Driver, Opened

pytestmark = pytest.mark.once

KEPT = Path(__file__).parent / "looks" / "fsdp_tp.capture"

TWO_FINDINGS = """HloModule m, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (x: f32[64,8]) -> f32[16,8] {
  %x = f32[64,8]{1,0} parameter(0)
  %p = u32[] partition-id()
  %i = s32[] convert(%p)
  %rows = s32[] constant(16)
  %zero = s32[] constant(0)
  %at = s32[] multiply(%i, %rows)
  %first = f32[64,8]{1,0} all-reduce(%x), replica_groups={{0,1,2,3}}, use_global_device_ids=true, channel_id=1, \
to_apply=%add
  %block = f32[16,8]{1,0} dynamic-slice(%first, %at, %zero), dynamic_slice_sizes={16,8}
  %sines = f32[16,8]{1,0} sine(%block)
  %second = f32[64,8]{1,0} all-gather(%sines), replica_groups={{0,1,2,3}}, use_global_device_ids=true, channel_id=2, \
dimensions={0}
  ROOT %r = f32[16,8]{1,0} dynamic-slice(%second, %at, %zero), dynamic_slice_sizes={16,8}
}
"""
"""An all-reduce and an all-gather of which each device uses its own block alone."""


async def test_a_stage(opened: Opened) -> None:
    """Found by its name; without one, what this program does comes before what Textual can do everywhere."""
    async with opened(load(str(KEPT), None)) as driver:
        await driver.ready()
        assert driver.screen.stage == "hlo"
        await driver.press("colon")
        await driver.until(lambda: "Overview  (1)" in driver.text)
        entries = [str(option.prompt) for option in driver.app.screen.query_one(CommandList).options]
        assert entries[0] == "Overview  (1)"
        assert entries.index("stage HLO") < next(n for n, entry in enumerate(entries) if entry.startswith("Theme"))
        await driver.press(*"stage stab")
        await driver.until(lambda: "stage StableHLO" in driver.text)
        await driver.press("down", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, MainScreen) and driver.screen.stage == "stablehlo")
        view = driver.screen.query_one(StagePane).view
        await driver.until(lambda: view.has_focus and "stablehlo.reduce_scatter" in view.source.text())


async def test_a_finding(opened: Opened) -> None:
    capture = Capture(stages=(Stage("hlo", "hlo", Source("m.hlo", TWO_FINDINGS.encode())),), complete=True)
    async with opened(capture) as driver:
        await driver.ready()
        await driver.press("colon", *"gather-then")
        await driver.until(lambda: "SS02 gather-then-slice  second" in driver.text)
        await driver.press("down", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, MainScreen))
        table = driver.screen.query_one("#findings", RowTable)
        await driver.until(lambda: table.has_focus and isinstance(driver.screen.selected, Finding))
        assert [finding.rule for finding in (driver.screen.selected,) if isinstance(finding, Finding)] == ["SS02"]
        assert table.rows[table.cursor].cells[1].plain.startswith("SS02")


class Odd(Screen[None]):
    """A screen with a place whose name is no markup."""

    def places(self) -> Iterator[tuple[str, str | None, Callable[[], None]]]:
        yield "x[/red].py", "y[/bold] of [z]", lambda: None


class OddApp(ThemedApp):
    CSS_PATH = None

    def get_default_screen(self) -> Screen[None]:
        return Odd()


async def test_names_are_no_markup() -> None:
    app = OddApp()
    async with app.run_test(size=(80, 24)) as pilot:
        driver = Driver(app, pilot)
        await driver.press("ctrl+p")
        await driver.until(lambda: "x[/red].py" in driver.text and "y[/bold] of [z]" in driver.text)
        await driver.press(*"red")
        await driver.until(lambda: "Theme" not in driver.text and "x[/red].py" in driver.text)
