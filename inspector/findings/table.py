"""The rules, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..report import Finding, Report, Severity
from .rule import Rule
from .rules import (
    ss00_useless_suppression,
    ss01_missing_reduce_scatter,
    ss03_extra_backward_psum,
    ss04_psum_of_invariant,
    ss05_unsound_invariance,
    ss06_unchecked_out_spec,
    ss09_full_rematerialization,
    ss11_indivisible_constraint,
)

RULES: tuple[Rule, ...] = (
    ss00_useless_suppression.RULE,
    ss01_missing_reduce_scatter.RULE,
    ss03_extra_backward_psum.RULE,
    ss04_psum_of_invariant.RULE,
    ss05_unsound_invariance.RULE,
    ss06_unchecked_out_spec.RULE,
    ss09_full_rematerialization.RULE,
    ss11_indivisible_constraint.RULE,
)

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first."""


def findings(report: Report, rules: Iterable[Rule] = RULES) -> Iterator[Finding]:
    """What these rules find, worst first, else in the order of the rules."""
    yield from sorted(
        (found for rule in rules for found in rule.check(report)), key=lambda found: SEVERITIES.index(found.severity)
    )


def rule_named(name: str) -> Rule | None:
    """The rule of that id or slug."""
    return next((rule for rule in RULES if name.upper() == rule.id or name.lower() == rule.slug), None)
