"""Findings as they are reported: what no experiment has shown to save something is a note, and promises nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..report import Experiment, Finding, Fix, Report
from ..units import known_sum
from .compiled import in_hlo
from .rule import rank
from .rules import rule_of

ALSO = "ended as well"

LEAST_SHARE = 0.01
LEAST_SECONDS = 1e-6
"""A saving below this share of a step, and below this time, is a note."""


def settled(report: Report) -> Report:
    """The report with each finding as severe as what is known of its fixes makes it; the largest savings first."""
    sent = known_sum(each.step_bytes for each in in_hlo(report)) or 0
    found = [_settled(each, sent) for each in report.findings]
    return replace(report, findings=tuple(sorted(_one_for_each_change(found), key=_by_cause)))


def _settled(found: Finding, step_bytes: int) -> Finding:
    """A finding of a program that sends so many bytes in all."""
    expected = found.expected if any(found.expected) else (found.saved_bytes, found.saved_seconds)
    found = replace(found, expected=expected, saved_bytes=None, saved_seconds=None)
    fixes = tuple(sorted((_with_reason(fix, found) for fix in found.fixes), key=_order))
    best = next((fix.experiment for fix in fixes if fix.helps), None)
    if best is None:
        is_proved = rule_of(found).is_observation and not _is_negligible(expected, step_bytes)
        is_kept = found.severity == "error" or is_proved
        return replace(found, fixes=fixes, severity=found.severity if is_kept else "info")
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
    less = None if best.bytes_saved is None or best.bytes_saved < 0 else best.bytes_saved
    found = replace(found, fixes=fixes, saved_bytes=less, saved_seconds=best.seconds_saved)
    return found if found.severity == "error" else replace(found, severity="info" if is_small else "warning")


def _is_negligible(cost: tuple[int | None, float | None], step_bytes: int) -> bool:
    """Return whether the bytes that a finding costs are known, and too few of those of a step for a warning."""
    return cost[0] is not None and cost[0] < LEAST_SHARE * step_bytes and (cost[1] or 0.0) < LEAST_SECONDS


def _less(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else before - after


def _with_reason(fix: Fix, found: Finding) -> Fix:
    if fix.edits or fix.why:
        return fix
    return replace(fix, why=rule_of(found).by_hand or "it is not written as an edit")


def _order(fix: Fix) -> tuple[bool, float, float, int]:
    """Fixes that help first, by their savings; of two that save as much the smaller one."""
    done = fix.experiment
    if done is None or not done.helps:
        return (True, 0.0, 0.0, 0)
    return (False, -(done.seconds_saved or 0.0), -done.worth, fix.lines)


def _one_for_each_change(found: Iterable[Finding]) -> list[Finding]:
    """One finding for each change that helps, the worst of those that it is a fix of.

    Those that say the same, or only suspect something, are one, with the places of all. What else the change is seen to
    end is evidence of the first, and a note.
    """
    shown: list[Finding] = []
    firsts: list[int] = []
    found = sorted(found, key=_by_cause)
    rules = Counter(each.rule for each in found)
    for each in found:
        best = _best(each)
        place = next((n for n in firsts if _is_ended(shown[n], each, best, rules[each.rule])), None)
        if place is None:
            firsts += [len(shown)] if best is not None else []
            shown.append(each)
            continue
        first = shown[place]
        if _says(first) == _says(each) or not (rule_of(each).is_observation or each.confidence == "proved"):
            places = dict.fromkeys((*first.related, each.place, *each.related))
            shown[place] = replace(
                first,
                related=tuple(place for place in places if place != first.place),
                expected=(
                    known_sum((first.expected[0], each.expected[0])),
                    known_sum((first.expected[1], each.expected[1])),
                ),
            )
            continue
        also = (ALSO, f"{each.rule}: {each.message}")
        shown[place] = replace(first, evidence=tuple(dict.fromkeys((*first.evidence, also))))
        shown.append(replace(each, severity="info"))
    return shown


def _by_cause(found: Finding) -> tuple[object, ...]:
    """Worse ones first; of those that are as bad, what was requested before what follows from it."""
    rule, (severity, *rest) = rule_of(found), rank(found)
    is_idea = found.severity == "warning" and _best(found) is None
    return severity, is_idea, rest, rule.is_outcome, not rule.is_observation


def _best(found: Finding) -> Experiment | None:
    first = found.fixes[0] if found.fixes and found.severity != "error" else None
    return first.experiment if first is not None and first.helps else None


def _is_ended(first: Finding, other: Finding, best: Experiment | None, count: int) -> bool:
    """Return whether a fix of the first is that of another one, or its best one comes to the same and ends it.

    One for which nothing helped, one of so many of its rule, is ended where the rule finds none any more.
    """
    done = _best(first)
    if best is None or done is None:
        return done is not None and other.severity == "warning" and done.gone.count(other.rule) >= count
    is_same = any(fix.helps and fix.edits == other.fixes[0].edits for fix in first.fixes)
    return is_same or (other.rule in done.gone and done.after == best.after)


def _says(found: Finding) -> str:
    """Observations of other rules say something else."""
    return found.rule if rule_of(found).is_observation else ""
