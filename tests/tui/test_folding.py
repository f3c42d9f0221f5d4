"""Debug information that is folded, and long lines that are wrapped."""

from __future__ import annotations

import random
import re

import pytest
from shardscope.inspector.ir.languages import LANGUAGES
from shardscope.parsers.source import Source
from shardscope.tui.reading_screen import ChoiceScreen
from shardscope.tui.stage_pane import StagePane
from shardscope.tui.text_index import LineIndex
from shardscope.tui.text_lines import FOLD, Folding, TextLines, folded, rows_of

from tests.sweeps import sampled

from .conftest import Opened
from .test_looks import kept

pytestmark = pytest.mark.once

TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames|\d+ .*|#loc.*)$")


def lines_of(name: str) -> TextLines:
    stage = kept().stage(name)
    assert stage is not None
    return TextLines(stage.source, LANGUAGES[stage.dialect].debug_info)


@pytest.mark.parametrize("name", ["stablehlo", "sdy", "hlo"])
def test_positions_count_the_lines_that_are_not_folded(name: str) -> None:
    lines = lines_of(name)
    texts = lines.source.text().splitlines()
    hidden, before = set(), False
    for number, text in enumerate(texts):
        is_row = bool(TABLES.match(text)) or (before and not text and bool(TABLES.match(texts[number + 1])))
        if is_row and before:
            hidden.add(number)
        before = is_row
    shown = [number for number in range(len(texts)) if number not in hidden]
    folding = lines.folding
    assert folding.count == len(shown) < len(texts)
    assert [folding.line(position) for position in range(folding.count)] == shown
    assert [folding.position(line) for line in shown] == list(range(len(shown)))
    for line in hidden:
        assert folding.line(folding.position(line)) == max(number for number in shown if number < line)
    folding.active = False
    assert [folding.line(position) for position in range(folding.count)] == list(range(len(texts)))


def test_what_is_folded_in_a_line_is_between_brackets() -> None:
    line = '%a = f32[] add(%b), metadata={op_name="x}\\"{" t={1}}, backend_config={"a":{"b":[]}}, q="[metadata={}"'
    source = Source("m", line.encode())
    cuts = Folding(source, LineIndex(source.data), LANGUAGES["hlo"].debug_info).cuts(0)
    shown = folded(line, cuts, source.data)
    assert shown.text == f'%a = f32[] add(%b), metadata={{{FOLD}}}, backend_config={{{FOLD}}}, q="[metadata={{}}"'
    for character, sign in enumerate(line):
        column = shown.column(character)
        if not any(start <= character < end for start, end in shown.cuts):
            assert shown.text[column] == sign
            assert shown.character(column) == character


def test_rows_hold_the_whole_line_and_are_no_wider_than_there_is_room() -> None:
    chance = random.Random(3)
    for _ in range(300):
        words = ["x" * chance.randint(1, 30) + chance.choice(",  ") for _ in range(chance.randint(0, 40))]
        text = " " * chance.randint(0, 12) + "".join(words)
        width = chance.randint(12, 90)
        rows = rows_of(text, width, 1000)
        assert "".join(text[start:end] for start, end in rows) == text
        assert all(end - start <= width for start, end in rows)


async def test_folding_on_the_screen(opened: Opened) -> None:
    async with opened(kept(), size=(160, 45)) as driver:
        await driver.ready()
        await driver.stage("hlo")
        view = driver.screen.query_one(StagePane).view
        await driver.press("home")
        assert "StackFrames" not in driver.text
        assert "op_name" not in driver.text
        assert f"FileNames {FOLD} " in driver.text
        await driver.press("down", "down", "space")  # the table of files
        assert "FunctionNames" in driver.text
        await driver.press("space", "down")
        assert view.cursor > 10
        assert "FunctionNames" not in driver.text
        await driver.press("m")
        await driver.until(lambda: "FunctionNames" in driver.text or view.scroll_offset.y)
        line = next(line for line in range(view.index.count) if "op_name=" in view.text_of(line))
        await driver.press("m")
        assert "op_name" not in driver.text
        await driver.press("slash", *"op_name", "enter")
        await driver.until(lambda: view.cursor == line)
        await driver.until(lambda: "op_name" in driver.text)  # in this line
        await driver.press("escape", "home", "slash", *"FileLocations", "enter")
        await driver.until(lambda: view.text_of(view.cursor) == "FileLocations")
        await driver.until(lambda: "FileLocations" in driver.text)


@pytest.mark.parametrize("size", sampled([((80, 24),), ((120, 40),)], 1))
async def test_wrapping_on_the_screen(opened: Opened, size: tuple[int, int]) -> None:
    async with opened(kept(), size=size) as driver:
        await driver.ready()
        await driver.stage("hlo")
        view = driver.screen.query_one(StagePane).view
        await driver.press("m", "w", "home")
        seen = "".join(row[: view.region.right][view.region.x :] for row in driver.text.splitlines())
        words = "".join(view.text_of(0).split())
        assert words in re.sub(r"[^\x21-\x7e]", "", seen)
        for key in ("end", "home", "pagedown", "pagedown", "pageup", "down", "up"):
            await driver.press(key)
            rows = [row.line for row in view.rows]
            assert view.cursor in rows
        await driver.press("end")
        assert view.cursor == view.index.count - 1
        await driver.press("slash", *"stack_frame_id", "enter")
        await driver.until(lambda: "stack_frame_id" in driver.text.replace("/stack_frame_id", "", 1))
        assert view.wrapped


async def test_the_whole_text_is_copied_with_what_is_folded(opened: Opened) -> None:
    async with opened(kept()) as driver:
        await driver.ready()
        await driver.stage("hlo")
        await driver.press("y")
        await driver.until(lambda: isinstance(driver.app.screen, ChoiceScreen))
        await driver.press("end", "enter")
        stage = kept().stage("hlo")
        assert stage is not None
        await driver.until(lambda: driver.app.clipboard == stage.source.text())
