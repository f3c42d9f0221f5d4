"""The rules' own words: complete, printed, and published."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.findings.fixes.constraints import _both
from shardscope.inspector.findings.rule import Rule, finding, keep_whole
from shardscope.inspector.findings.rules import RULES, rule_named
from shardscope.inspector.ir.sharding_spellings import from_spec
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.explained import rule_text, rules_page
from shardscope.inspector.report import FindingPlace, SourcePosition
from shardscope.parsers.sharding_syntax.jax_arrays import parse_spec
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

ROOT = Path(__file__).parent.parent.parent


def test_the_published_page_is_current() -> None:
    """`make rules` writes it."""
    assert (ROOT / "docs" / "rules.md").read_text() == rules_page(RULES)


def test_every_rule_is_registered() -> None:
    files = sorted(path.stem for path in (ROOT / "inspector" / "findings" / "rules").glob("ss*.py"))
    assert files == [f"{rule.id.lower()}_{rule.slug.replace('-', '_')}" for rule in RULES]


def test_of_every_rule_it_is_said_whether_its_change_is_tried() -> None:
    assert all(rule.tries or rule.by_hand for rule in RULES)


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


MESH = MeshSyntax((("data", 4), ("model", 2)))

WRITTEN = {
    "P('data', None)": "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
    "P(None, 'data')": "{devices=[1,4,2]<=[8] last_tile_dim_replicate}",
    "P('model', None)": "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
    "P(None, 'model')": "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
}
"""As JAX writes them over this mesh."""


@pytest.mark.parametrize(
    ("before", "after", "spec"),
    [
        ("P('data', None)", "P(None, 'model')", "P('data', 'model')"),
        ("P('data', None)", "P('model', None)", "P(('model', 'data'), None)"),
        ("P('data', None)", "P(None, 'data')", "P(None, 'data')"),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "P(None, 'model')", None),
        ("{devices=[8,1]7,6,5,4,3,2,1,0}", "P(None, 'model')", None),
        ("{unknown}", "P(None, 'model')", None),
    ],
)
def test_a_step_between_two_shardings_is_one_that_code_can_name(before: str, after: str, spec: str | None) -> None:
    """Over whole axes of the mesh, each once: JAX's PartitionSpec takes nothing else."""
    report = replace(inspect(Capture()), meshes=(MESH,))
    found = _both(report, WRITTEN.get(before, before), WRITTEN[after])
    assert found == (None if spec is None else from_spec(parse_spec(spec), MESH, 2))


def test_wrong_gradients_come_before_errors_that_may_follow_from_them() -> None:
    """Of findings that are no errors nothing follows."""
    place = FindingPlace("w", SourcePosition())
    errors, warnings = (
        [finding(rule, place, "", confidence="proved", severity=severity) for rule in RULES]
        for severity in ("error", "warning")
    )
    ordered = sorted([*warnings, *errors], key=lambda each: each.rank)
    assert ordered == [*sorted(errors, key=lambda each: not rule_named(each.rule).of_gradients), *warnings]
