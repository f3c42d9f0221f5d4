"""How wide the columns of a table are, and which of them are shown, in the space that there is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ..inspector.render.table import Column

__all__ = ["BETWEEN", "Column", "fitted"]

BETWEEN = 2
"""Blank columns between two of a table."""


def fitted(columns: Sequence[Column], natural: Sequence[int], width: int) -> tuple[tuple[int, int], ...]:
    """The columns that are shown, as pairs of index and width. `natural` is the width that each would need.

    The more important a column is, the sooner it gets what it needs; those that are equally important share.
    """
    least = [min(need, column.least) for column, need in zip(columns, natural, strict=True)]
    by_importance = sorted(range(len(columns)), key=lambda index: -columns[index].importance)
    shown = list(by_importance)
    while len(shown) > 1 and sum(least[index] + BETWEEN for index in shown) - BETWEEN > width:
        shown.pop()
    left = width + BETWEEN - sum(least[index] + BETWEEN for index in shown)
    widths = {index: least[index] for index in shown}
    for _, equals in groupby(shown, key=lambda index: columns[index].importance):
        # Who needs least comes first, so that what it does not take is left for the others.
        waiting = sorted(equals, key=lambda index: natural[index] - widths[index])
        for place, index in enumerate(waiting):
            more = min(natural[index] - widths[index], max(left, 0) // (len(waiting) - place))
            widths[index] += more
            left -= more
    return tuple(sorted(widths.items()))
