"""Targets side by side: nothing is lost, nothing is counted twice, and the same cause is one row."""

from __future__ import annotations

import json
from dataclasses import replace

import jax
import pytest
from shardscope.inspector.diff.targets import compare
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json.report import comparison_to_json

from tests.conftest import SampleCapture


def test_every_collective_is_in_one_cell(sample: SampleCapture) -> None:
    reports = [inspect(sample(name)) for name in ("fsdp_tp:grad", "fsdp_tp:loss")]
    comparison = compare(("one", "two"), reports)
    for number, report in enumerate(reports):
        shown = [collective for row in comparison.rows for collective in row.cells[number]]
        assert sorted(shown, key=lambda c: c.span) == [c for c in report.collectives if c.stage == "hlo"]
    causes = [row.cause for row in comparison.rows]
    assert len(set(causes)) == len(causes)


@pytest.mark.skipif(jax.__version_info__ < (0, 9, 1), reason="JAX loses transformations or lines in shard_maps")
def test_what_both_do_is_one_row(sample: SampleCapture) -> None:
    """What the loss gathers, its gradient gathers too, from the same line."""
    comparison = compare(("one", "two"), [inspect(sample(name)) for name in ("fsdp_tp:grad", "fsdp_tp:loss")])
    forward = [row for row in comparison.rows if row.cause.direction == "forward" and row.cause.axes == "batch"]
    assert any(all(row.cells) for row in forward)


def test_the_same_twice(sample: SampleCapture) -> None:
    report = inspect(sample("fsdp_tp:grad"))
    assert all(row.cells[0] == row.cells[1] for row in compare(("a", "b"), (report, report)).rows)


def test_json_points_at_the_collectives(sample: SampleCapture) -> None:
    reports = [inspect(sample("fsdp_tp:grad")), inspect(sample("matmul_psum:matmul"))]
    comparison = compare(("a", "b"), reports)
    document = json.loads(comparison_to_json(comparison))
    assert document["schema"] == "shardscope.comparison/1"
    for row, said in zip(comparison.rows, document["rows"], strict=True):
        for report, cell, positions in zip(document["reports"], row.cells, said["cells"], strict=True):
            assert [report["collectives"][position]["name"] for position in positions] == [c.name for c in cell]


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 does not combine these sums")
def test_what_is_combined_is_of_one_cause(sample: SampleCapture) -> None:
    """Compilers combine sums in orders of their own, and with other sums, and name the first of them."""
    report = inspect(sample("transformer:train_step"))
    combined = max(report.collectives, key=lambda each: len(each.parts))
    assert len(combined.parts) > 2
    last = combined.parts[-1]
    other = replace(combined, parts=combined.parts[::-1], source=last.source, direction=last.direction)
    changed = tuple(other if each is combined else each for each in report.collectives)
    comparison = compare(("one", "two"), (report, replace(report, collectives=changed)))
    assert any(combined in one and other in two for one, two in (row.cells for row in comparison.rows))
