"""Reduce-scatters that did not form, over the same axes in the same pass, are one finding."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.findings.rules import ss01_missing_reduce_scatter as rule
from shardscope.inspector.pipeline import suspected as inspect


@pytest.mark.parametrize(
    ("found", "groups"),
    [
        ([("x", "backward"), ("x", "unknown")], [["backward", "unknown"]]),
        ([("x", "unknown"), ("x", "backward")], [["backward", "unknown"]]),
        ([("x", "unknown"), ("x", "unknown")], [["unknown", "unknown"]]),
        ([("x", "forward"), ("x", "backward")], [["forward"], ["backward"]]),
        ([("x", "backward"), ("y", "unknown")], [["backward"], ["unknown"]]),
    ],
)
def test_a_sum_that_was_combined_with_a_loss_is_with_the_others(
    monkeypatch: pytest.MonkeyPatch, found: list[tuple[str, str]], groups: list[list[str]]
) -> None:
    """XLA combines a gradient's sum with that of a loss, of another pass: then it has none."""
    sums = [SimpleNamespace(collective=SimpleNamespace(axes=axes, direction=direction)) for axes, direction in found]
    report = inspect(Capture())
    monkeypatch.setattr(rule, "used_in_blocks", lambda report, kind: iter(sums))
    grouped = list(rule._unformed_groups(report))
    assert [[each.collective.direction for each in group] for group in grouped] == groups
