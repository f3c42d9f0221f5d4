"""How the width of a table is shared among its columns, and that of the screen among its tabs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.capture.file import load
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.table import Column, Table
from shardscope.inspector.render.tables import TABLES
from shardscope.inspector.render.tables.comparison import screen_tables
from shardscope.tui.painted import columns_of, rows_of
from shardscope.tui.row_table import BETWEEN, fitted, grid_of
from shardscope.tui.tab_strip import Tab, TabStrip
from shardscope.tui.tables_pane import TABS
from textual.geometry import Size

ANY = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=8)


@given(ANY, st.integers(1, 200))
def test_columns_fit_and_none_is_wider_than_it_needs(table: list[tuple[int, int, int]], width: int) -> None:
    columns = [Column("", least, importance) for least, importance, _ in table]
    natural = [need for *_, need in table]
    shown = fitted(columns, natural, width)
    assert shown
    assert all(size <= natural[index] for index, size in shown)
    if len(shown) > 1:
        assert sum(size + BETWEEN for _, size in shown) - BETWEEN <= width
    if sum(natural) + BETWEEN * (len(natural) - 1) <= width:
        assert shown == tuple(enumerate(natural))


def test_equally_important_columns_share() -> None:
    columns = [Column("", 4, 1), Column("", 4, 1), Column("", 4, 1)]
    assert fitted(columns, (6, 40, 40), 6 + 20 + 20 + 2 * BETWEEN) == ((0, 6), (1, 20), (2, 20))
    first = Column("", 4, 2)
    assert fitted([first, *columns[1:]], (30, 40, 40), 30 + 10 + 10 + 2 * BETWEEN) == ((0, 30), (1, 10), (2, 10))


KEPT = Path(__file__).parents[1] / "command" / "approved"


@pytest.mark.parametrize("names", ["counted_on_chips", "exchange", "manual", "manual→revised", "rare", "target"])
def test_columns_of_tables_as_the_screen_narrows(names: str, request: pytest.FixtureRequest) -> None:
    """The widths of the columns of kept captures' tables, as somebody has looked at them."""
    reports = [inspect(load(KEPT / f"{name}.capture")) for name in names.split("→")]
    tables: Iterable[Table]
    tables = screen_tables(diff(*reports)) if len(reports) > 1 else (make(reports[0]) for make in TABLES)
    text = "".join(f"{line}\n" for table in tables for line in widths(table))
    path = KEPT / "texts" / f"{names.replace('→', '-')}.columns"
    if request.config.getoption("--snapshot-update"):
        path.write_text(text)
    assert text == path.read_text()


def widths(table: Table) -> Sequence[str]:
    """For some widths of the screen the columns that there is room for, with their own."""
    columns = columns_of(table)
    natural = grid_of(columns, (row.texts for row in rows_of(table, {}))).natural
    shown = {width: fitted(columns, natural, width) for width in range(20, 90, 6)}
    return [
        f"{table.id} {width}: " + ", ".join(f"{columns[index].title or '·'} {size}" for index, size in shown[width])
        for width in shown
        if table.rows and len(columns) > 1
    ]


COUNTS = {"findings": 2, "collectives": 375, "shardings": 3918, "arguments": 290, "passes": 9, "timeline": 1018}


@pytest.mark.parametrize(("width", "lines"), [(80, 2), (120, 2), (200, 1)])
def test_tabs_keep_names_and_counts(width: int, lines: int) -> None:
    strip = TabStrip()
    strip.tabs = tuple(Tab(name, label, key, COUNTS.get(name)) for name, (label, key) in TABS.items())
    strip.chosen = "collectives"
    assert strip.get_content_height(Size(width, 24), Size(width, 24), width) == lines
    shown = [drawn.plain for line in strip._lines(width) for _, drawn in line]
    assert shown == [f" {tab.key} {tab.label}" + (f"({tab.count:,})" if tab.count else "") for tab in strip.tabs]
    assert strip.get_content_height(Size(30, 12), Size(30, 12), 30) == 2
    assert all(sum(drawn.cell_length for _, drawn in line) <= 30 for line in strip._lines(30))


@pytest.mark.parametrize(
    ("width", "shown"),
    [(40, " jaxpr 99 ms StableHLO 1.5 s HLO 2 s"), (28, " jaxpr StableHLO HLO 2 s"), (20, " jaxpr StableHLO HLO")],
)
def test_times_of_stages_where_there_is_room(width: int, shown: str) -> None:
    strip = TabStrip()
    notes = {"jaxpr": "99 ms", "StableHLO": "1.5 s", "HLO": "2 s"}
    strip.tabs = tuple(Tab(name, name, note=note) for name, note in notes.items())
    strip.chosen = "HLO"
    [line] = strip._lines(width)
    assert "".join(drawn.plain for _, drawn in line) == shown
