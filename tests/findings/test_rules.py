"""The rules' own words: complete, printed, and published."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from shardscope.inspector.findings.rule import Rule, keep_whole
from shardscope.inspector.findings.rules import RULES, rule_named
from shardscope.inspector.render.explained import rule_text, rules_page
from shardscope.parsers.sharding_syntax.mesh import AxisRef

ROOT = Path(__file__).parent.parent.parent


def test_the_published_page_is_current() -> None:
    """`make rules` writes it."""
    assert (ROOT / "docs" / "rules.md").read_text() == rules_page(RULES)


def test_every_rule_is_registered() -> None:
    files = sorted(path.stem for path in (ROOT / "inspector" / "findings" / "rules").glob("ss*.py"))
    assert files == [f"{rule.id.lower()}_{rule.slug.replace('-', '_')}" for rule in RULES]


def test_of_every_rule_it_is_said_whether_its_change_is_tried() -> None:
    assert all(bool(rule.tries) != bool(rule.by_hand) for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_words(rule: Rule) -> None:
    assert rule_named(rule.id.lower()) is rule_named(rule.slug.upper()) is rule
    for code in (rule.faulty, rule.repaired):
        ast.parse(code)
        assert code in rule_text(rule).replace("\n      ", "\n")


def test_parts_of_axes_are_named_by_their_axes() -> None:
    """Each once, whole ones not: JAX's PartitionSpec takes names of axes alone."""
    whole, first, second = AxisRef("y"), AxisRef("x", (1, 2)), AxisRef("x", (2, 2))
    assert keep_whole([whole]) == keep_whole([]) == ""
    assert keep_whole([first, whole, second]).startswith("keep 'x' whole where a reshape")
    assert "'x', 'z' whole" in keep_whole([second, AxisRef("z", (2, 4))])
