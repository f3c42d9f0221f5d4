"""What is selected in one pane shows in all others."""

from __future__ import annotations

import pytest
from shardscope.inspector.report import Collective
from shardscope.tui.row_table import RowTable
from shardscope.tui.stage_pane import SourcePane, StagePane
from shardscope.tui.text_view import TextView

from ..conftest import SampleCapture
from .conftest import Driver, Opened

pytestmark = pytest.mark.once


def stage_line(driver: Driver) -> str:
    view = driver.screen.query_one(StagePane).view
    return view.text_of(view.cursor)


def source_line(driver: Driver) -> str:
    view = driver.screen.query_one(SourcePane).view
    return view.text_of(view.cursor)


async def ready(driver: Driver) -> None:
    await driver.ready()


async def test_the_first_collective_is_shown_everywhere(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await ready(driver)
        assert "all-gather(" in stage_line(driver)
        assert "lax.all_gather" in source_line(driver)
        assert "all-gather over batch" in driver.text
        assert "2 groups of 4" in driver.text
        await driver.until(lambda: "{0,2,4,6}  {1,3,5,7}" in driver.text)


async def test_each_row_leads_to_its_instruction_and_its_line(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await ready(driver)
        await driver.press("3")
        for _ in range(len(driver.screen.query_one("#collectives-table", RowTable).rows) - 1):
            await driver.press("down")
            await driver.until(lambda: getattr(driver.screen.linked, "place", None) == driver.screen.selected)
            selected = driver.screen.selected
            assert isinstance(selected, Collective)
            assert selected.source.frame is not None
            assert f"%{selected.name} = " in stage_line(driver)
            assert driver.screen.query_one(SourcePane).view.cursor == selected.source.frame.line - 1
            primitive = {"all-gather": "all_gather", "reduce-scatter": "psum_scatter", "all-reduce": "psum"}
            if selected.direction == "forward":
                assert primitive[selected.kind] in source_line(driver)


@pytest.mark.parametrize(
    ("stage", "shown"), [("jaxpr", "all_gather["), ("stablehlo", "stablehlo.all_gather"), ("hlo", "all-gather(")]
)
async def test_a_collective_is_found_in_every_stage(
    sample: SampleCapture, opened: Opened, stage: str, shown: str
) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await ready(driver)
        await driver.stage(stage)
        await driver.until(lambda: shown in stage_line(driver))
        assert "lax.all_gather" in source_line(driver)


async def test_from_the_source_to_the_collectives(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await ready(driver)
        view = driver.screen.query_one(SourcePane).view
        scatter = next(line for line in range(view.index.count) if "psum_scatter(" in view.text_of(line))
        await driver.source()
        await driver.press("home", *["down"] * scatter)
        await driver.until(lambda: "reduce-scatter(" in stage_line(driver))
        table = driver.screen.query_one("#collectives-table", RowTable)
        assert table.linked
        assert {row.cells[1].plain for row in table.rows if row.key in table.linked} == {"reduce-scatter", "all-gather"}
        assert {row.cells[2].plain for row in table.rows if row.key in table.linked} == {"feats"}


async def test_from_an_operation_to_the_source(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await ready(driver)
        await driver.stage("stablehlo")
        await driver.press("home")
        view = driver.screen.query_one(StagePane).view
        wanted = next(line for line in range(view.index.count) if "stablehlo.reduce_scatter" in view.text_of(line))
        view.focus()
        view.move_to(wanted)
        await driver.until(lambda: "psum_scatter" in source_line(driver))
        assert "reduce-scatter over feats" in driver.text


async def test_a_click_selects(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await ready(driver)
        table = driver.screen.query_one("#collectives-table", RowTable)
        await driver.press("3")
        await driver.pilot.click(table, offset=(10, 7))
        assert table.cursor == 6
        assert driver.screen.selected == driver.screen.query_one("CollectivesPane").collective(table.rows[6].key)
        await driver.pilot.click("#stages", offset=(3, 0))
        assert driver.screen.stage == "jaxpr"
        text = driver.screen.query_one("#stage-text", TextView)
        await driver.until(lambda: text.text_of(0).startswith(("{ lambda", "let")))
        await driver.pilot.click(text, offset=(20, 4))
        assert text.has_focus


async def test_alike_collectives_unfold(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:grad")) as driver:
        await ready(driver)
        table = driver.screen.query_one("#collectives-table", RowTable)
        folded = len(table.rows)
        await driver.press("3")
        alike = next(number for number, row in enumerate(table.rows) if row.cells[0].plain == "2×")
        await driver.press(*["down"] * alike, "space")
        assert len(table.rows) == folded + 1
        assert table.cursor == alike
        await driver.press("down")
        assert "%" + driver.screen.selected.name + " = " in driver.screen._line_of(driver.screen.selected)
        await driver.press("space")
        assert len(table.rows) == folded


async def test_the_program_as_written(sample: SampleCapture, opened: Opened) -> None:
    async with opened(sample("fsdp_tp:loss")) as driver:
        await ready(driver)
        await driver.press("3")
        assert "Collectives in the compiled program: " in driver.text
        await driver.press("F")
        assert "Collectives in StableHLO, before partitioning: " in driver.text
