"""Damaged captures on the screen, driven by random keys.

    python -m tests.tui.mutants 1000 CAPTURE...        (from the root of the checkout)

opens that many of them, and prints the seed and the traceback of each that fails.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from shardscope.inspector.capture.model import STAGES, Capture
from shardscope.inspector.on_screen import analyses
from shardscope.tui.app import ShardscopeApp
from shardscope.tui.main_screen import MainScreen
from textual.pilot import WaitForScreenTimeout

from tests.capture.mutants import frames_of, mutant, opened

KEYS = [
    *"1234567890",
    *"][npfgdmsztvcxwjkhlibao",
    "tab",
    "tab",
    "enter",
    "enter",
    "space",
    "escape",
    "question_mark",
    "slash",
]
KEYS += ["down", "down", "up", "right", "left", "home", "end", "pagedown", "pageup", "ctrl+p"]
SIZES = [(150, 45), (80, 24), (40, 12)]


async def drive(capture: Capture, chance: random.Random, steps: int = 20) -> None:
    """Open the screen, and press some keys.

    Raises:
        Exception: what was raised in the screen.
    """
    app = ShardscopeApp((capture,), analyses())
    with suppress(WaitForScreenTimeout):  # a machine that has much to do
        async with app.run_test(size=chance.choice(SIZES), notifications=True) as pilot:
            for _ in range(100):
                await pilot.pause(0.01)
                if isinstance(app.screen, MainScreen) and not app.screen.waiting:
                    break
            for _ in range(steps):
                if chance.random() < 0.25 and isinstance(app.screen, MainScreen):
                    app.screen.action_stage(chance.choice(list(STAGES)))
                elif chance.random() < 0.2:
                    await pilot.click(offset=(chance.randrange(40), chance.randrange(12)))
                else:
                    await pilot.press(chance.choice(KEYS))
    if app._exception is not None:
        raise app._exception


def main(count: str, *captures: str) -> None:
    """Open so many mutants of some captures, from a seed that `COUNT` may name as in `1000-2000`."""
    first, _, last = count.rpartition("-")
    originals = [frames_of(Path(capture)) for capture in captures]
    failed = refused = 0
    start = time.monotonic()
    for seed in range(int(first or 0), int(last)):
        capture = opened(mutant(originals[seed % len(originals)], seed))
        if capture is None:
            refused += 1
            continue
        try:
            asyncio.run(drive(capture, random.Random(seed)))
        except Exception:
            failed += 1
            print(f"seed {seed}\n{traceback.format_exc()}", flush=True)
        if seed % 50 == 49:
            print(f"{seed + 1}: {failed} failed, {refused} refused, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{failed} failed, {refused} refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
