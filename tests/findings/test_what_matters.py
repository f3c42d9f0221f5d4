"""Rows of what matters: what is alike in all layers folds, by the values it is about, never by its words."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.tables.findings import matters
from shardscope.inspector.report import Report

from tests.inspector.complete import kept


def report_of(name: str) -> Report:
    return inspect(kept.kept(name))


def groups(report: Report) -> list[list[int]]:
    number = {id(found): index for index, found in enumerate(report.findings)}
    return [[number[id(found)] for found in row.value] for row in matters(report).rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["wrong_gradients", "missing_reduce_scatter.faulty.tpu", "gather_then_slice.faulty"])
def test_words_decide_nothing(name: str) -> None:
    report, words = report_of(name), map("message {}".format, count())
    reworded = tuple(replace(found, message=next(words)) for found in report.findings)
    assert groups(replace(report, findings=reworded)) == groups(report)


def test_layers_fold_and_their_values_do_not() -> None:
    report = report_of("wrong_gradients")
    first = replace(report.findings[0], fixes=())
    subjects = ("h0.attn.w", "h1.attn.w", "h12.attn.w", "h0.attn.b", "h0.mlp.w")
    found = tuple(replace(first, subject=subject) for subject in subjects)
    assert groups(replace(report, findings=found)) == [[0, 1, 2], [3], [4]]
    over = tuple(replace(each, axes=()) for each in found[:2])
    assert groups(replace(report, findings=(*over, found[2]))) == [[0, 1], [2]]


def test_gradients_of_two_arguments_at_one_line_are_two() -> None:
    said = [{found.message for found in row.value} for row in matters(report_of("wrong_gradients")).rows]  # type: ignore[attr-defined]
    assert all(len(messages) == 1 for messages in said)
