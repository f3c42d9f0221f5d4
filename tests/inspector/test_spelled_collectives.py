"""Words about one collective: for each there is a case in which another would be wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.report import spelled
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

from .test_module_trees import collective

PLAIN = collective(8, 1, (), ())
MESH = MeshSyntax((("x", 2), ("y", 4), ("z", 1)))
NUMBERS = np.arange(8).reshape(2, 4, 1)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "all-reduce"),
        ({"reduction": "sum"}, "all-reduce"),
        ({"reduction": "max"}, "all-reduce max"),
        ({"kind": "all-gather", "is_async": True}, "all-gather async"),
        ({"reduction": "max", "is_async": True}, "all-reduce max async"),
    ],
)
def test_kinds(fields: dict[str, Any], text: str) -> None:
    assert spelled.kind_text(replace(PLAIN, **fields)) == text


@pytest.mark.parametrize(
    ("axes", "groups", "text", "over"),
    [
        ((AxisRef("x"),), ((0, 1),), "x", "x"),
        ((AxisRef("x"), AxisRef("y")), (), "x, y", "x, y"),
        ((), ((0,), (1,)), "none", "groups of 1 devices"),
        (None, ((0, 1), (2, 3)), "2 groups", "groups of 2 devices"),
        (None, ((0, 1, 2), (3,)), "2 groups", "groups of 1 or 3 devices"),
        (None, ((0, 1),), "1 group", "groups of 2 devices"),
        (None, (), "?", "its devices"),
    ],
)
def test_axes(axes: Any, groups: Any, text: str, over: str) -> None:
    found = replace(PLAIN, axes=axes, groups=groups)
    assert (spelled.axes_text(found), spelled.over_text(found)) == (text, over)
    assert spelled.transfer_text([found]) == f"all-reduce {text}"
    assert spelled.transfer_text([found, PLAIN, PLAIN]) == f"all-reduce {text} and 2 more"


@pytest.mark.parametrize(
    ("name", "origin", "argument"),
    [
        ("state[0]['embedding']", "partitioner", "state[0]['embedding']"),
        ("state.params", "unknown", "state.params"),
        ("state.params", "user", None),
        ("state.params", "autodiff", None),
        ("jit(f)/psum", "partitioner", None),
        (None, "partitioner", None),
    ],
)
def test_arguments(name: str | None, origin: Any, argument: str | None) -> None:
    assert spelled.argument_of(replace(PLAIN, op_name=name, origin=origin)) == argument


@pytest.mark.parametrize(
    ("along", "text"),
    [
        ((0,), "4 groups of 2 along x; y fixed in each"),
        ((1,), "2 groups of 4 along y; x fixed in each"),
        ((0, 1), "1 group of 8"),
        ((1, 2), "2 groups of 4 along y, z; x fixed in each"),
        ((2,), "8 groups of 1 along z; x, y fixed in each"),
    ],
)
def test_groups_along_axes(along: tuple[int, ...], text: str) -> None:
    """The groups are those that numpy makes of the devices' numbers."""
    others = [axis for axis in range(3) if axis not in along]
    size = int(np.prod([NUMBERS.shape[axis] for axis in along]))
    groups = tuple(map(tuple, NUMBERS.transpose(*others, *along).reshape(-1, size).tolist()))
    axes = tuple(AxisRef("xyz"[axis]) for axis in along)
    assert spelled.groups_text(replace(PLAIN, axes=axes, groups=groups), MESH) == text


@pytest.mark.parametrize(
    ("groups", "pairs", "text"),
    [
        (((0, 1), (2, 3)), (), "2 groups of 2; members are consecutive"),
        (((0, 2), (1, 3)), (), "2 groups of 2; members are 2 apart"),
        (((0, 2000), (1, 2001)), (), "2 groups of 2; members are 2,000 apart"),
        (((0, 1), (2, 4)), (), "2 groups of 2"),
        (((0, 1, 3), (2, 4, 6)), (), "2 groups of 3"),
        (((0, 1, 2, 3),), (), "1 group of 4"),
        (((0, 1, 2), (3,)), (), "2 groups of 1 or 3; members are consecutive"),
        ((), (), "0 groups of ?"),
        ((), ((0, 1), (1, 0)), "2 transfers"),
        ((), ((0, 1),), "1 transfer"),
    ],
)
def test_groups_that_no_axes_form(groups: Any, pairs: Any, text: str) -> None:
    found = replace(PLAIN, groups=groups, pairs=pairs)
    assert spelled.groups_text(found, MeshSyntax((("device", 8),))) == text
    if len(groups) > 1:
        assert spelled.groups_text(found, MESH) == text.partition(";")[0]
    steps = {other - one for group in groups for one, other in pairwise(group)}
    assert spelled.step_of(groups) == (steps.pop() if len(steps) == 1 else None)


def test_types_and_times() -> None:
    small, large, unknown = ArrayType("f32", (2,)), ArrayType("f32", (64,)), ArrayType("f?", (9,))
    several = {"operand_types": (small, unknown, large), "result_types": (small, unknown, large)}
    for fields, text in (
        ({"operand_types": (small,), "result_types": (large,)}, "f32[2] → f32[64]"),
        ({"operand_types": (small,), "result_types": (small,)}, "f32[2]"),
        ({"operand_types": (small, large), "result_types": (small, large)}, "f32[2], f32[64]"),
        (several, "f32[64], f32[2], … 3 in all"),
    ):
        assert spelled.types_text(replace(PLAIN, **fields)) == text  # type: ignore[arg-type]
    for executions, most, text in ((3, None, "3"), (0, 5, "0"), (None, 5, "≤ 5"), (None, None, "?")):
        assert spelled.executions_text(replace(PLAIN, executions=executions, most_executions=most)) == text
