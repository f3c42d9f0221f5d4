"""Draw docs/screen.svg: the screen over a sample, as it is."""

import asyncio
import re
import sys
from pathlib import Path

from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.on_screen import analyses
from shardscope.samples.catalogue import samples
from shardscope.tui.app import ShardscopeApp

SIZE = (150, 44)
KEYS = ("1", "down", "down")
FONT = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)
"""Fonts from elsewhere are not loaded where the picture is shown; any with fixed width will do."""


async def draw(path: Path) -> None:
    """Run the screen without a terminal until everything is there, press the keys, and save what is seen."""
    script = next(sample.path for sample in samples() if sample.name == "fsdp_tp")
    app = ShardscopeApp(capture(Request(f"{script}:grad")), analyses())
    async with app.run_test(size=SIZE) as pilot:
        while not app.screen.capture.complete or app.screen.report is None:
            await pilot.pause(0.2)
        await pilot.press(*KEYS)
        await pilot.pause(2)
        path.write_text(FONT.sub("", app.export_screenshot(title="shardscope run fsdp_tp:grad")))


asyncio.run(draw(Path(sys.argv[1])))
