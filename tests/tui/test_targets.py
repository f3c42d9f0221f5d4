"""Several targets on the screen, and what one of them costs."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import Capture, Failure
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.on_screen import analyses
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.edit_loop import EditLoop
from shardscope.tui.feed import Feed
from shardscope.tui.inspect_pane import InspectPane
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.side_by_side import SideBySide
from textual.widgets import Static

from tests.conftest import SampleCapture

from .conftest import Driver, Opened
from .test_looks import on_tpus

pytestmark = pytest.mark.once


async def test_what_it_costs(opened: Opened, sample: SampleCapture) -> None:
    async with opened(on_tpus(sample("fsdp_tp:grad"))) as driver:
        await driver.until(lambda: "bound by communication" in driver.text)
        details = driver.screen.query_one(InspectPane).query_one(Static)
        await driver.until(lambda: "(cost model)" in " ".join(str(details.content).split()))
        assert "max(" in str(details.content)  # below the fold


async def test_fake_devices_cost_nothing(opened: Opened, sample: SampleCapture) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await driver.ready()
        assert "est." not in driver.text


async def test_targets_are_switched_and_shown_side_by_side(sample: SampleCapture) -> None:
    here = sample("fsdp_tp:grad")
    failed = Capture(failure=Failure("script", "there are 4 devices", "import"), complete=True)
    requests = [Request("step.py:grad", target=target) for target in ("cpu", "tpu:v5p:2x2x2", "tpu:v5p:2x2x1")]
    app = ShardscopeApp(
        (here,),
        analyses(),
        others=[Feed((each,), lambda: None) for each in (on_tpus(here), failed)],
        loops=list(map(EditLoop, requests)),
    )
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "all-gather" in driver.text)
        first = app.screen
        await driver.press("t")
        await driver.until(lambda: "tpu:v5p:2x2x2" in driver.text and "est." in driver.text)
        assert isinstance(app.screen, MainScreen)
        assert app.screen is not first
        await driver.press("t")
        await driver.until(lambda: "step.py:grad   tpu:v5p:2x2x1" in driver.text)
        await driver.press("t")
        await driver.until(lambda: app.screen is first)
        await pilot.resize_terminal(80, 24)
        await driver.until(lambda: "T targets" in driver.text.splitlines()[-1])
        await pilot.resize_terminal(150, 45)
        await driver.press("T")
        await driver.until(lambda: isinstance(app.screen, SideBySide) and "line 32 predict" in driver.text)
        assert "esc close" in driver.text
        assert "tpu:v5p:2x2x2" in driver.text
        assert "bound by communication" in driver.text
        await driver.until(lambda: "cpu 6× all-gather 2.73 KiB" in driver.text)
        # What was not compiled is not said to communicate nothing.
        assert "tpu:v5p:2x2x1 stopped while importing the script: there are 4 devices" in driver.text
        assert "tpu:v5p:2x2x1 not compiled" in driver.text
        assert "nothing" not in driver.text
        await driver.press("escape")
        await driver.until(lambda: app.screen is first)


async def test_one_target_has_nothing_to_switch(opened: Opened, sample: SampleCapture) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await driver.until(lambda: "all-gather" in driver.text)
        first = driver.app.screen
        await driver.press("t", "T")
        assert driver.app.screen is first
        assert "next target" not in driver.text


async def test_what_differs_between_two_targets(sample: SampleCapture) -> None:
    here = sample("fsdp_tp:grad")
    app = ShardscopeApp((here,), analyses(), others=[Feed((on_tpus(here),), lambda: None)])
    async with app.run_test(size=(150, 45)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "all-gather" in driver.text)
        first = app.screen
        await driver.press("d")
        await driver.until(lambda: "no change in communication" in driver.text)
        assert "tpu:v5p:2x2x2" in driver.text
        await driver.press("escape")
        await driver.until(lambda: app.screen is first)
