"""The drawing of a mesh that is not known by its axes: rows as long as the groups or their steps, within the width."""

from __future__ import annotations

import re

import pytest
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.parsers.sharding_syntax.replica_groups import Groups
from shardscope.tui.mesh_grid import Picture, Traffic, draw


def groups_of(count: int, size: int, apart: bool) -> Groups:
    """Groups of devices that follow each other, or whose members are as far apart as there are groups."""
    if apart:
        return tuple(tuple(range(first, count * size, count)) for first in range(count))
    return tuple(tuple(range(size * first, size * (first + 1))) for first in range(count))


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("size", [(64, 64), (16, 256), (128, 4), (3, 50)])
@pytest.mark.parametrize("width", [30, 76, 180])
def test_a_group_is_a_row_or_a_column_and_no_line_is_too_long(size: tuple[int, int], apart: bool, width: int) -> None:
    count, members = size
    groups = groups_of(count, members, apart)
    traffic = Traffic(groups, {member: number for number, group in enumerate(groups) for member in group}, shown=0)
    mesh = MeshSyntax((("device", count * members),))
    lines = [line.plain for line in draw(Picture(mesh, traffic, range(count * members), {}, width, 20))]
    assert max(map(len, lines)) <= width
    numbers = [re.findall(r"\d+", line) for line in lines[2:] if "⋮" not in line]
    rows = [list(map(int, row[1:])) for row in numbers if row]
    side = count if apart else members
    for row in rows:
        assert len({device // side for device in row}) == 1
        assert row[0] % side == 0
    assert rows[-1][-1] == count * members - 1
