"""Tables that have no rows say why."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.parsers.source import Source

from tests.conftest import SampleCapture
from tests.tui.conftest import Opened

pytestmark = pytest.mark.once

TEXT = "HloModule m\n\nENTRY %main (a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0)\n}\n"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (TEXT, "2", "No findings."),
        (TEXT[:-2], "2", "No findings in what could be read."),
        (TEXT, "5", "Not recorded in a dump."),
        (TEXT, "6", "Not available: no jaxpr was recorded."),
        (TEXT, "7", "Dumps are not executed."),
        (TEXT, "8", "Dumps are not executed."),
        (TEXT, "9", "No messages."),
    ],
)
async def test_of_a_dump(opened: Opened, text: str, key: str, words: str) -> None:
    stage = Stage("hlo", "hlo", Source("m.txt", text.encode()))
    async with opened(Capture(stages=(stage,), complete=True)) as driver:
        await driver.press(key)
        await driver.until(lambda: f"{words} " in driver.text)


async def test_rows_take_the_words_place(opened: Opened, sample: SampleCapture) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await driver.press("6")
        await driver.until(lambda: "all_gather" in driver.text)
        assert "There is no jaxpr" not in driver.text
