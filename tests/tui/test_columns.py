"""How the width of a table is shared among its columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.render.table import Column
from shardscope.tui.columns import BETWEEN, fitted

TABLES = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=8)


@given(TABLES, st.integers(1, 200))
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
