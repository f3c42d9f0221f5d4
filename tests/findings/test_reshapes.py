"""Reshapes that are at fault: for what they take, and not for what is done with what they give."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.findings.rules.ss13_reshape_splits_sharded_dim import _is_at_fault
from shardscope.inspector.report import CollectiveCause, MovedDimension, NamedOperation, SourcePosition, ValueName

RESHAPE = NamedOperation("reshape", "stablehlo.reshape")
VALUE = ValueName("%0", NamedOperation("add", "stablehlo.add"))


def cause(operation: NamedOperation = RESHAPE, is_operand: bool | None = True, **more: Any) -> CollectiveCause:
    moved = None if is_operand is None else MovedDimension(is_operand, VALUE, 0)
    return CollectiveCause(
        "reshard", operation, None, SourcePosition(), moved, None, None, (), (), False, "exact", **more
    )


@pytest.mark.parametrize(
    ("each", "is_at_fault"),
    [
        (cause(), True),
        (cause(is_operand=None), True),  # what is moved is not known
        (cause(is_operand=False), False),  # it is moved for those that use it
        (cause(is_kept=True), False),  # its blocks are blocks of the result
        (cause(NamedOperation("sin", "reshape"), is_merged=True), True),  # by the name of what comes next
        (cause(NamedOperation("sin", "reshape")), False),  # and then it may be gathered for that
        (cause(NamedOperation("sin", "reshape"), is_operand=False, is_merged=True), False),
        (cause(NamedOperation("dot_general", "stablehlo.dot_general"), is_merged=True), False),
    ],
)
def test_for_what_it_takes(each: CollectiveCause, is_at_fault: bool) -> None:
    assert _is_at_fault(each) == is_at_fault
