"""The order of rows by a column: by the numbers that cells stand for, not by how these are printed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.render.table import Row, Table, count_cell, share_cell, size_cell, time_cell, titled
from shardscope.tui.painted import rows_of
from shardscope.tui.row_table import RowTable

from .conftest import Opened
from .test_looks import kept

NUMBERS = st.one_of(st.none(), st.integers(0, 1 << 50))


@given(st.lists(NUMBERS))
def test_numbers_are_ordered_by_what_they_are(numbers: list[int | None]) -> None:
    """`1.5 KiB` and `1500 B` are as far apart as their bytes; what is unknown comes last."""
    rows = [
        (size_cell(each), time_cell(None if each is None else each * 1e-9), share_cell(each, 1 << 50))
        for each in numbers
    ]
    painted = rows_of(Table("t", "T", titled("size", "time", "share"), tuple(map(Row, rows))), {}, numbers)
    expected = sorted((each for each in numbers if each is not None), reverse=True)
    for column in range(3):
        ordered = [row.key for row in sorted(painted, key=lambda row: row.order(column))]
        assert ordered == [*expected, *(None for each in numbers if each is None)]


def test_texts_come_after_numbers_and_empty_cells_last() -> None:
    cells = ("", "unknown", count_cell(2), "a2", count_cell(10))
    painted = rows_of(Table("t", "T", titled("x"), tuple(Row((each,)) for each in cells)), {})
    assert [row.key for row in sorted(painted, key=lambda row: row.order(0))] == [4, 2, 3, 1, 0]


async def test_a_table_that_was_hidden_begins_at_its_first_row(opened: Opened) -> None:
    """It took the selection while it had no rows in view, and must not scroll to it as if it had one."""
    async with opened(kept(), size=(120, 26)) as driver:
        await driver.ready()
        table = driver.screen.query_one("#collectives-table", RowTable)
        assert driver.screen.report is not None
        for collective in driver.screen.report.collectives:
            driver.screen.select(collective)
            await driver.until(lambda: driver.screen.linked is not None)
            await driver.pilot.pause(0.1)
            if table.cursor > 1:
                break
        assert table.cursor > 1
        await driver.press("3")
        await driver.until(lambda: table.has_focus)
        assert table.scroll_offset.y == 0
