"""Findings as they are reported: what no experiment has shown to save something is a note, and promises nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..report import Finding, Fix, Report
from .rule import rank
from .rules import is_observation, rule_named

LEAST_SHARE = 0.01
LEAST_SECONDS = 1e-6
"""A saving below this share of a step, and below this time, is a note."""


def settled(report: Report) -> Report:
    """The report with each finding as severe as what is known of its fixes makes it; the largest savings first."""
    found = [_settled(each, report) for each in report.findings]
    return replace(report, findings=tuple(sorted(_one_for_each_change(found), key=rank)))


def _settled(found: Finding, report: Report) -> Finding:
    expected = found.expected if any(found.expected) else (found.saved_bytes, found.saved_seconds)
    found = replace(found, expected=expected, saved_bytes=None, saved_seconds=None)
    fixes = tuple(sorted((_with_reason(fix, found) for fix in found.fixes), key=_order))
    best = next((fix.experiment for fix in fixes if fix.helps), None)
    if found.severity == "error" or is_observation(found):
        sent, taken = (None, None) if best is None else (best.bytes_saved, best.seconds_saved)
        less = sent if sent is not None and sent > 0 else None
        return replace(found, fixes=fixes, saved_bytes=less, saved_seconds=taken)
    if best is None:
        return replace(found, fixes=fixes, severity="info")
    shares = [
        (saved or 0) / whole
        for saved, whole in (
            (best.bytes_saved, best.before.bytes),
            (best.seconds_saved, best.before.seconds),
            (_less(best.before.flops, best.after.flops), best.before.flops),
            (_less(best.before.memory, best.after.memory), best.before.memory),
        )
        if whole
    ]
    if best.before.seconds:
        shares = shares[1:2]
    is_all = best.before.bytes is None and best.after.bytes == 0
    is_small = not is_all and max(shares, default=0.0) < LEAST_SHARE and (best.seconds_saved or 0.0) < LEAST_SECONDS
    return replace(
        found,
        fixes=fixes,
        severity="info" if is_small else "warning",
        saved_bytes=best.bytes_saved,
        saved_seconds=best.seconds_saved,
    )


def _less(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else before - after


def _with_reason(fix: Fix, found: Finding) -> Fix:
    if fix.edits or fix.why:
        return fix
    rule = rule_named(found.rule)
    return replace(fix, why=(rule.by_hand if rule is not None else "") or "it is not written as an edit")


def _order(fix: Fix) -> tuple[bool, float, float]:
    """Fixes that help first, by their savings."""
    done = fix.experiment
    if done is None or not done.helps:
        return (True, 0.0, 0.0)
    return (False, -(done.seconds_saved or 0.0), -done.work_saved)


def _one_for_each_change(found: Iterable[Finding]) -> Iterable[Finding]:
    """One finding for each change that helps: of several, the worst, with the places of the others.

    Observations of other rules say something else, whatever helps against them.
    """
    known: dict[object, Finding] = {}
    for number, each in enumerate(sorted(found, key=rank)):
        first = each.fixes[0] if each.fixes else None
        of = each.rule if is_observation(each) else ""
        key = (of, first.edits) if first is not None and first.helps and each.severity != "error" else number
        if key in known:
            other = known[key]
            places = dict.fromkeys((*other.related, each.place, *each.related))
            known[key] = replace(other, related=tuple(place for place in places if place != other.place))
        else:
            known[key] = each
    return known.values()
