"""The rules, in their order."""

from __future__ import annotations

from collections.abc import Iterator

from ..report import Finding, Report, Severity
from .rule import Rule
from .rules import (
    ss01_missing_reduce_scatter,
    ss02_gather_then_slice,
    ss03_extra_backward_psum,
    ss04_psum_of_invariant,
    ss05_unsound_invariance,
    ss06_unchecked_out_spec,
    ss09_full_rematerialization,
    ss11_indivisible_constraint,
    ss14_ping_pong_reshard,
)

RULES: tuple[Rule, ...] = (
    ss01_missing_reduce_scatter.RULE,
    ss02_gather_then_slice.RULE,
    ss03_extra_backward_psum.RULE,
    ss04_psum_of_invariant.RULE,
    ss05_unsound_invariance.RULE,
    ss06_unchecked_out_spec.RULE,
    ss09_full_rematerialization.RULE,
    ss11_indivisible_constraint.RULE,
    ss14_ping_pong_reshard.RULE,
)

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first."""


def findings(report: Report) -> Iterator[Finding]:
    """What all rules find, worst first, else in the order of the rules."""
    yield from sorted(
        (found for rule in RULES for found in rule.check(report)), key=lambda found: SEVERITIES.index(found.severity)
    )


def rule_named(name: str) -> Rule | None:
    """The rule of that id or slug."""
    return next((rule for rule in RULES if name.upper() == rule.id or name.lower() == rule.slug), None)
