"""How the screen looks, over a capture that was kept: it is also the oldest file that has to stay readable."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import load
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.palette import DARK, LIGHT
from shardscope.tui.stage_pane import StagePane
from textual.pilot import Pilot

KEPT = Path(__file__).parent / "looks" / "fsdp_tp.capture"

Compare = Callable[..., bool]

TAKEN_WITH = "8.2.8"
"""The version of Textual that the pictures are of; others draw some lines in other pieces."""

pytestmark = pytest.mark.skipif(version("textual") != TAKEN_WITH, reason=f"the pictures are of Textual {TAKEN_WITH}")


@pytest.mark.parametrize(
    ("size", "theme", "keys"),
    [
        ((150, 45), DARK.name, ("6",)),
        ((150, 45), LIGHT.name, ("1", "v")),
        ((80, 24), DARK.name, ("0",)),
        ((200, 50), DARK.name, ("2", "a")),
    ],
    ids=["collectives", "variance-on-light", "narrow", "wide"],
)
def test_screen(snap_compare: Compare, size: tuple[int, int], theme: str, keys: tuple[str, ...]) -> None:
    app = ShardscopeApp((load(KEPT),))
    app.theme = theme

    async def everything_is_there(pilot: Pilot[None]) -> None:
        screen = app.screen
        assert isinstance(screen, MainScreen)
        while screen.linked is None:
            await pilot.pause(0.05)
        view = screen.query_one(StagePane).view
        for key in keys:
            await pilot.press(key)
            while not (view.linked and view.source.name == screen.stage):
                await pilot.pause(0.05)
        seen = ""
        while seen != (seen := app.export_screenshot()):
            await pilot.pause(0.5)

    assert snap_compare(app, terminal_size=size, run_before=everything_is_there)
