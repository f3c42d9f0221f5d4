"""Rows of what matters: what is alike in all layers folds, by the values it is about, never by its words."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from shardscope.inspector.findings.settled import settled
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.finding_facts import largest_note
from shardscope.inspector.render.tables.findings import matters
from shardscope.inspector.report import Edit, Finding, Fix, Report

from tests.inspector.complete import kept
from tests.inspector.tables import by_hand

EDIT = Edit("train.py", 1, 0, 1, 0, "x")


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


def test_a_large_part_that_only_a_person_can_mend_is_said() -> None:
    """Equal ones count together; of what was tried, or is not proved, or is small, nothing is said.

    A collective is listed of each stage, and sent once.
    """
    idea = (Fix("write it otherwise"),)
    found = by_hand.finding(confidence="proved", fixes=idea, saved_bytes=8, rule="SS15")
    one = by_hand.collective(wire_bytes=48)
    both, total = (replace(one, stage="hlo-spmd"), one), by_hand.total(one, wire_bytes=48)
    report = replace(by_hand.report(collectives=both), communication=(total,))

    def said(*findings: Finding) -> str:
        return largest_note(settled(replace(report, findings=findings)))

    assert "33% of what is sent: Words.; idea: write it otherwise" in said(found, replace(found, message="Words."))
    assert said(found) == ""
    assert "50%" in said(replace(found, saved_bytes=24))
    assert said(replace(found, saved_bytes=24, confidence="likely")) == ""
    assert said(replace(found, saved_bytes=24, fixes=(replace(idea[0], edits=(EDIT,)),))) == ""


@pytest.mark.parametrize(
    ("size", "severity", "settles"),
    [(8, "warning", "info"), (48, "warning", "warning"), (None, "warning", "warning"), (8, "error", "error")],
)
def test_an_observed_cost_below_a_share_of_the_step_is_a_note(size: int | None, severity: str, settles: str) -> None:
    """A mean over an axis along which a loss is the same; a sum of it is wrong, however few bytes it sends."""
    found = by_hand.finding(rule="SS04", confidence="proved", severity=severity, saved_bytes=size)
    report = by_hand.report(collectives=(by_hand.collective(wire_bytes=4800, stage="hlo-spmd"),), findings=(found,))
    (after,) = settled(report).findings
    assert after.severity == settles
