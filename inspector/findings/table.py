"""The rules, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..report import Finding, Report
from ..severity import SEVERITIES
from .rule import Rule
from .rules import (
    ss00_useless_suppression,
    ss01_missing_reduce_scatter,
    ss02_gather_then_slice,
    ss03_extra_backward_psum,
    ss04_psum_of_invariant,
    ss05_unsound_invariance,
    ss06_unchecked_out_spec,
    ss07_reduction_in_accumulation_loop,
    ss08_loop_invariant_collective,
    ss09_full_rematerialization,
    ss10_wide_dtype_collective,
    ss11_indivisible_constraint,
    ss12_replicated_large_value,
    ss13_reshape_splits_sharded_dim,
    ss14_ping_pong_reshard,
    ss15_op_gathers_operand,
    ss16_custom_call_forces_gather,
    ss17_slow_link_collective,
    ss18_exposed_collective,
    ss19_partial_ppermute,
    ss20_donation_lost,
    ss21_collective_order_divergence,
    ss22_gather_then_reduce,
    ss23_implicit_communication,
)

RULES: tuple[Rule, ...] = (
    ss00_useless_suppression.RULE,
    ss01_missing_reduce_scatter.RULE,
    ss02_gather_then_slice.RULE,
    ss03_extra_backward_psum.RULE,
    ss04_psum_of_invariant.RULE,
    ss05_unsound_invariance.RULE,
    ss06_unchecked_out_spec.RULE,
    ss07_reduction_in_accumulation_loop.RULE,
    ss08_loop_invariant_collective.RULE,
    ss09_full_rematerialization.RULE,
    ss10_wide_dtype_collective.RULE,
    ss11_indivisible_constraint.RULE,
    ss12_replicated_large_value.RULE,
    ss13_reshape_splits_sharded_dim.RULE,
    ss14_ping_pong_reshard.RULE,
    ss15_op_gathers_operand.RULE,
    ss16_custom_call_forces_gather.RULE,
    ss17_slow_link_collective.RULE,
    ss18_exposed_collective.RULE,
    ss19_partial_ppermute.RULE,
    ss20_donation_lost.RULE,
    ss21_collective_order_divergence.RULE,
    ss22_gather_then_reduce.RULE,
    ss23_implicit_communication.RULE,
)


def findings(report: Report, rules: Iterable[Rule] = RULES) -> Iterator[Finding]:
    """What these rules find, worst first, else in the order of the rules."""
    yield from sorted(
        (found for rule in rules for found in rule.check(report)), key=lambda found: SEVERITIES.index(found.severity)
    )


def rule_named(name: str) -> Rule | None:
    """The rule of that id or slug."""
    return next((rule for rule in RULES if name.upper() == rule.id or name.lower() == rule.slug), None)
