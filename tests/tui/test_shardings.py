"""The shardings' table, the drawing and the tree of a value, the replay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shardscope.inspector import on_screen
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import first_look, inspect
from shardscope.inspector.report import ShardedValue
from shardscope.inspector.selection.selection import linked
from shardscope.inspector.shardings.conflicts import conflicts_of
from shardscope.inspector.shardings.table import values
from shardscope.tui import analyst
from shardscope.tui.details import sharding_details
from shardscope.tui.inspect_pane import InspectPane
from shardscope.tui.row_table import RowTable
from shardscope.tui.shardings_pane import FILTERS, ShardingsPane
from textual.widgets import Static

from ..conftest import SampleCapture
from .conftest import Driver, Opened

pytestmark = pytest.mark.once


def table(driver: Driver) -> RowTable:
    return driver.screen.query_one("#shardings-table", RowTable)


def column(driver: Driver, index: int) -> list[str]:
    return [row.cells[index].plain for row in table(driver).rows]


def details(driver: Driver) -> str:
    return str(driver.screen.query_one(InspectPane).query_one(Static).content)


async def shown(driver: Driver) -> None:
    await driver.until(lambda: driver.screen.report is not None)
    await driver.press("4")
    # Three arguments, the output, and the result of each of four operations.
    await driver.until(lambda: len(table(driver).rows) == 8)


async def test_a_tab_that_is_opened_while_loading_selects_its_row(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        driver.screen.action_table("shardings")
        await driver.until(lambda: isinstance(driver.screen.selected, ShardedValue))
        await driver.press("F")
        table = driver.screen.query_one("#shardings-table", RowTable)
        pane = driver.screen.query_one(ShardingsPane)
        await driver.until(lambda: driver.screen.selected == pane.value(table.rows[table.cursor].key))


async def test_every_value_is_in_the_table(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        assert column(driver, 1) == ["x", "w1", "w2", "result", "tanh", "dot_general", "dot_general", "sin"]
        assert column(driver, 3)[:4] == ["P('data', None)", "P(None, 'model')", *["unconstrained"] * 2]
        assert column(driver, 4)[2] == "P('model', None)"
        assert "all values: 8" in driver.text


async def test_order_and_filter(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        await driver.press(*["b"] * 6)
        assert column(driver, 1)[:2] == ["w1", "w2"]
        assert column(driver, 6)[0] == "48 KiB"
        await driver.press("b", "b", "F")
        assert column(driver, 0) == ["argument"] * 3 + ["output"]
        for _ in range(len(FILTERS) - 4):
            await driver.press("F")
        assert driver.screen.query_one(ShardingsPane).choice.shown == "differing from requested"
        assert table(driver).rows == ()
        await driver.press("F")
        assert column(driver, 1)[:2] == ["w1", "w2"]
        await driver.press("F", "F")
        assert len(table(driver).rows) == 8


async def test_the_drawing_and_the_tree(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        await driver.press("down", "down")
        await driver.until(lambda: "w2" in details(driver) and "model on dim 0" in details(driver))
        text = details(driver)
        assert "│ 0 2 4 6 │  dim 0: 256/2" in text
        assert "│ 1 3 5 7 │" in text
        assert "unsharded: dim 1: 10" in text
        assert "model on dim 0 ← argument w1 dim 1" in text
        assert "├ dot_general  line 21, step 5" in text
        assert "└ dot_general  line 20, step 1" in text
        assert "ik,kj->ij" in text


async def test_a_value_leads_to_its_line(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        await driver.press("end")
        await driver.until(lambda: driver.screen.linked is not None and driver.screen.linked.stack)
        linked = driver.screen.linked
        assert linked is not None
        assert linked.stack[0].line == 21
        assert linked.spans


async def test_the_replay(sample: SampleCapture, opened: Opened) -> None:
    """Backwards from the end: the last step gave w2 its sharding; before the first only what was asked is there."""
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        assert column(driver, 4)[2] == "P('model', None)"
        await driver.press("comma")
        await driver.until(lambda: "after step 4 of 5" in driver.text)
        assert column(driver, 4)[2:4] == ["P(None, None)", "P('data', None)"]
        for _ in range(5):
            await driver.press("comma")
        await driver.until(lambda: "before propagation" in driver.text)
        assert column(driver, 4) == ["P('data', None)", "P(None, 'model')", *["P(None, None)"] * 6]
        await driver.press("full_stop")
        await driver.until(lambda: "after step 0 of 5: data from x dim 0 to %0 (tanh) dim 0" in driver.text)
        assert column(driver, 4)[4] == "P('data', None)"
        await driver.press("equals_sign")
        assert column(driver, 4)[2] == "P('model', None)"


async def test_the_replay_stays_while_the_texts_do(sample: SampleCapture, opened: Opened) -> None:
    """Another report of the same texts keeps the step; what goes into the partitioner changes where axes came from."""
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        await driver.press("comma")
        await driver.until(lambda: "after step 4 of 5" in driver.text)
        pane = driver.screen.query_one(ShardingsPane)
        assert pane.report is not None
        program = pane.report.program
        pane.report = replace(pane.report, findings=())
        await driver.until(lambda: "after step 4 of 5" in driver.text)
        assert pane.choice.step == 4
        stages = tuple(each for each in program.capture.stages if each.name != "hlo-before")
        pane.report = replace(pane.report, program=Program(replace(program.capture, stages=stages), program.stages))
        await driver.until(lambda: "step through propagation" in driver.text)
        assert pane.choice.step is None


async def test_what_a_collective_is_there_for(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("predict:predict"), size=(170, 90)) as driver:
        await driver.until(lambda: driver.screen.linked is not None)
        await driver.until(lambda: "why it is here" in details(driver))
        assert "over a sharded dimension" in details(driver).replace("\n", " ")


async def test_of_a_large_program_the_table_is_there_first(
    sample: SampleCapture, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyst, "LARGE", 0)
    looked = []
    monkeypatch.setattr(on_screen, "first_look", lambda program: looked.append(first_look(program)) or looked[-1])
    async with opened(sample("predict:predict")) as driver:
        await shown(driver)
        # Findings and collectives come with the whole report.
        await driver.until(lambda: driver.screen.report is not None and driver.screen.report.collectives)
        await driver.until(lambda: len(table(driver).rows) == 8)
    assert looked[0].shardings
    assert not looked[0].collectives


async def test_values_in_conflict(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("transformer:train_step")) as driver:
        await driver.until(lambda: driver.screen.report is not None)
        await driver.press("4")
        pane = driver.screen.query_one(ShardingsPane)
        await driver.until(lambda: pane.count > len(driver.screen.report.shardings))
        await driver.press(*["F"] * (len(FILTERS) - 1))
        await driver.until(lambda: len(table(driver).rows) > 0)
        assert pane.choice.shown == "in conflict"
        shown = [pane.value(row.key) for row in table(driver).rows]
        program = driver.screen.report.program
        every = [pane.value(number) for number in range(pane.count)]
        assert shown == [value for value in every if value is not None and conflicts_of(program, value)]


def test_conflicts_stand_with_the_values_that_they_are_about(sample: SampleCapture) -> None:
    report = inspect(sample("transformer:train_step"))
    stage = report.program.stage("sdy")
    assert stage is not None
    found = ((value, linked(report, value, stage)) for value in values(report.program))
    value, selected = next((value, each) for value, each in found if each.conflicts)
    conflict = selected.conflicts[0]
    lines = sharding_details(report, value, selected, 60)
    text = " ".join(" ".join(line.plain.split()) for line in lines)
    assert f"conflicts {conflict.operation}" in text
    assert f"conflicting shardings for {conflict.factor}" in text
