"""The screen over captures that are real, driven by keys and clicks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import textual._wait
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.on_screen import analyses
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.main_screen import MainScreen
from shardscope.tui.stage_pane import SourcePane, StagePane
from textual.pilot import Pilot

MAX_WAITS = 3000
"""Fiftieths of a second to wait for what has to come: a machine that has much to do takes long."""

textual._wait.SLEEP_GRANULARITY = 1 / 200  # a key took three fiftieths of a second, most of it asleep
textual._wait.SLEEP_IDLE = textual._wait.SLEEP_GRANULARITY / 10


class Driver:
    """What tests do with a screen, and what they see of it."""

    def __init__(self, app: ShardscopeApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> MainScreen:
        screen = self.app.screen
        assert isinstance(screen, MainScreen)
        return screen

    @property
    def text(self) -> str:
        """All that is on the screen."""
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in line) for line in lines)

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something holds."""
        for _ in range(MAX_WAITS):
            await self.pilot.pause()
            if true():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"never came about; the screen is\n{self.text}")

    async def ready(self) -> None:
        """Wait until what was first selected is shown everywhere."""
        await self.until(lambda: not self.screen.waiting and self.screen.linked is not None)

    async def stage(self, name: str) -> None:
        """Go to a stage, as the palette does it."""
        self.screen.action_stage(name)
        await self.until(lambda: self.screen.query_one(StagePane).view.has_focus)

    async def source(self) -> None:
        """Go to the source."""
        self.screen.action_source()
        await self.until(lambda: self.screen.query_one(SourcePane).view.has_focus)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


Opened = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture
def opened() -> Opened:
    """Opens the screen over captures, as they arrive one after the other."""

    @asynccontextmanager
    async def run(captures: Capture | Iterable[Capture], size: tuple[int, int] = (150, 45)) -> AsyncIterator[Driver]:
        app = ShardscopeApp((captures,) if isinstance(captures, Capture) else captures, analyses())
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Driver(app, pilot)

    return run
