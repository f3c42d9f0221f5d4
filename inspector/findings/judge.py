"""From the findings of the rules to those that are reported: selected, and not suppressed by a comment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..ir.program import Program
from ..report import Finding, Report, Rule, Suppressed, Suppression
from ..report.policy import Policy
from ..report.position import CallSites, call_sites
from .fixes.calls import other_calls
from .grounded import grounded
from .rule import rank
from .rules import RULES, rule_named
from .suppressions import Comments


def with_findings(report: Report, policy: Policy) -> Report:
    """The report with what is found in it, less what the user has said to know."""
    named = policy.rules or ()
    report = replace(
        report,
        rules=RULES,
        thresholds=policy.thresholds,
        lists_implicit=policy.strict or any(rule.fails_strict and rule.id in named for rule in RULES),
    )
    reported, suppressed, used = [], [], set()
    comments = Comments(report.program)
    script = "" if report.capture.subject is None else report.capture.subject.script or ""
    wanted = [rule for rule in RULES if policy.wants(rule.id)]
    strict = {rule.id for rule in wanted if policy.strict and rule.fails_strict}
    for found in _findings(report, (rule for rule in wanted if rule.reads == "program")):
        comment = comments.about(found.place.source, found.rule, found.slug)
        pattern = policy.pattern_against(found, script)
        if comment is not None:
            used.add(comment)
            suppressed.append(Suppressed(found, comment))
        elif pattern is not None:
            by = Suppression(policy.settings, 0, (found.rule,), f"per-path-ignores of {pattern}")
            suppressed.append(Suppressed(found, by))
        else:
            reported.append(replace(found, severity="error") if found.rule in strict else found)
    idle = tuple(_idle(comments.all() - used, policy, _lines(report.program)))
    report = replace(report, suppressed=tuple(suppressed), idle=idle)
    more = _findings(report, (rule for rule in wanted if rule.reads == "suppressions"))
    return replace(report, findings=(*reported, *more))


def _findings(report: Report, rules: Iterable[Rule]) -> list[Finding]:
    """Return the findings of these rules: by severity, then by cost, else in the order of the rules."""
    made = (each for rule in rules for each in rule.check(report))
    found = [_saying_what_else(report.program, each) for each in grounded(report, made)]
    places = [place for each in found for place in (each.place, *each.related)]
    sites = call_sites([*(place.source for place in places), *(each.source for each in report.collectives)])
    return sorted((_with_call_sites(each, sites) for each in found), key=rank)


def _with_call_sites(found: Finding, sites: CallSites) -> Finding:
    place, *related = (replace(each, call_site=sites.get(each.source)) for each in (found.place, *found.related))
    return replace(found, place=place, related=tuple(related))


def _saying_what_else(program: Program, found: Finding) -> Finding:
    if not any(fix.edits for fix in found.fixes):
        return found
    stacks = [place.source.stack for place in (found.place, *found.related)]
    fixes = (replace(fix, title=fix.title + other_calls(program, fix, stacks)) for fix in found.fixes)
    return replace(found, fixes=tuple(fixes))


def _idle(unused: Iterable[Suppression], policy: Policy, lines: set[tuple[str, int]]) -> Iterator[Suppression]:
    """Return the suppressions that cannot work; for strict readers, also those that suppress nothing.

    A line that the captured function does not get to, or a rule that is not looked for, says nothing of a comment.
    """
    for each in sorted(unused, key=lambda comment: (comment.file, comment.line)):
        unknown = [name for name in each.rules if rule_named(name) is None]
        ids = [rule.id for rule in map(rule_named, each.rules) if rule is not None]
        here = any((os.path.normpath(each.file), line) in lines for line in range(each.first, each.last + 1))
        if not each.rules:
            yield replace(each, problem="it names no rule, as in ignore[SS04]")
        elif unknown:
            yield replace(each, problem=f"there is no rule {', '.join(unknown)}")
        elif policy.strict and here and all(map(policy.wants, ids)):
            yield replace(each, problem=f"{', '.join(each.rules)}: no finding here")


def _lines(program: Program) -> set[tuple[str, int]]:
    text = program.jaxpr
    frames = () if text is None else text.program.frames
    return {(os.path.normpath(frame.file), frame.line) for frame in frames}
