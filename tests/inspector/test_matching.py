"""Pairs of one collective on each side: what may differ between two that are said to be one, changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from shardscope.inspector.diff.matching import match
from shardscope.inspector.report.changes import CollectiveSignature, Operand, Place, Transfer

ONE = Transfer(
    CollectiveSignature("all-reduce", "sum", ("x",), ("f32",), 32, 32, 48, 2, is_async=False),  # type: ignore[arg-type]
    Place((("step", "y = psum(x)"), ("main", "step(x)")), "psum", "forward"),
    *("written", "f32[8]", ""),
    operands=(Operand("f32", 8, 8),),
)

WORK: dict[str, dict[str, Any]] = {
    "kind": {"kind": "all-gather", "reduction": None},
    "axes": {"axes": ("y",)},
    "partners": {"axes": None, "partners": "0 1"},
    "dtype": {"dtypes": ("bf16",)},
    "bytes in": {"bytes_in": 64},
    "bytes out": {"bytes_out": 64},
    "unknown bytes": {"bytes_in": None},
    "times": {"executions": 5},
}

PLACES: dict[str, dict[str, Any]] = {
    "line": {"frames": (("step", "y = psum(x + 1)"), ("main", "step(x)"))},
    "function": {"frames": (("stage", "z = psum(x)"),)},
    "no line": {"frames": (("", ""),)},
    "pass": {"direction": "backward"},
}


def changed(fields: str) -> Transfer:
    """The one with other fields, and as many elements as before where only their type is another."""
    names = fields.split(", ") if fields else []
    work = replace(ONE.work, **{key: value for name in names for key, value in WORK.get(name, {}).items()})
    place = replace(ONE.place, **{key: value for name in names for key, value in PLACES.get(name, {}).items()})
    operands = (Operand("bf16", 8, 8),) if "dtype" in names else ONE.operands if work.bytes_in == 32 else ()
    return replace(ONE, work=work, place=place, operands=operands, types="" if operands else "f32[?]")


@pytest.mark.parametrize(
    ("fields", "together"),
    [
        *(("", True), ("line", True), ("function", True), ("pass", True), ("no line, pass", True)),
        *(("times", True), ("bytes in", True), ("dtype", True), ("axes", True), ("partners", True)),
        *(("kind", True), ("kind, bytes out", True), ("kind, bytes in", True), ("kind, axes", False)),
        *(("line, times", True), ("line, dtype, bytes in", True), ("function, bytes in, bytes out", True)),
        # The same operands, and another result.
        *(("line, kind", True), ("function, kind, bytes out", True), ("line, kind, bytes in", False)),
        *(("line, kind, times", False), ("line, kind, unknown bytes", False), ("line, kind, dtype", False)),
        # The same bytes over other axes, in the same function.
        *(("line, axes", True), ("line, axes, times", True), ("function, axes", False), ("no line, axes", False)),
        *(("line, axes, bytes in", False), ("line, axes, dtype", False), ("line, axes, kind", False)),
        # The same in another pass, as often as that runs.
        *(("line, pass, times", True), ("function, pass, times", True), ("pass, times, bytes in", False)),
        *(("pass, times, bytes out", False), ("pass, times, dtype", False), ("pass, times, axes", False)),
        ("pass, times, kind", False),
    ],
)
def test_pairs(fields: str, together: bool) -> None:
    one, other = ((ONE, 1),), ((changed(fields), 1),)
    for before, after in ((one, other), (other, one)):
        same, regrouped = match(before, after)
        assert bool(same) == (changed(fields).work == ONE.work)
        sides = [(len(each.befores), len(each.afters)) for each in regrouped]
        assert sides == ([] if same else [(1, 1)] if together else [(0, 1), (1, 0)])


@pytest.mark.parametrize("fields", ["line, axes", "function, bytes in", "kind, bytes in"])
def test_of_two_that_could_be_meant_there_is_no_pair(fields: str) -> None:
    """Two others are as near: nothing says which of them it became."""
    other = changed(fields)
    another = replace(other, work=replace(other.work, bytes_out=5, wire_bytes=7))
    _, regrouped = match(((ONE, 1),), ((other, 1), (another, 1)))
    assert all(not each.befores or not each.afters for each in regrouped)
