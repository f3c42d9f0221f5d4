"""Requests that may cost less with another spec, as findings to be tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ...parsers.source import Frame
from ..findings.rule import finding
from ..findings.rules import rule_named
from ..report import Finding, FindingPlace, Fix, Report, SourcePosition
from .allowed import obstacle
from .pricing import PricedCandidate, PricedChange, Prices
from .written import fixes_of, place_of

RULE = "SS23"
"""The rule of communication that follows from requests."""

MAX_TRIED = 8
MAX_OF_ONE_PRICE = 2
"""Changes of one price are most often one program."""

MAX_IDEAS = 1


def suspects(report: Report, priced: Prices) -> Iterator[Finding]:
    """Yield a finding for each of the cheapest candidates that an edit can express, and for one that none can."""
    counts: Counter[int] = Counter()
    ideas = tried = 0
    for each in priced.candidates:
        key = round(each.price)
        if counts[key] >= MAX_OF_ONE_PRICE or tried >= MAX_TRIED:
            continue
        fixes = [fix for fix in fixes_of(report, each) if not (fix.edits and obstacle(report, fix.edits))]
        is_idea = not any(fix.edits for fix in fixes)
        if not fixes or (is_idea and ideas >= MAX_IDEAS):
            continue
        ideas, tried = ideas + is_idea, tried + (not is_idea)
        counts[key] += not is_idea
        yield _finding(each, fixes, int(priced.today - each.price))


def _finding(candidate: PricedCandidate, fixes: list[Fix], saved: int) -> Finding:
    rule = rule_named(RULE)
    if rule is None:
        raise KeyError(RULE)
    stack = place_of(candidate)
    edit = next((edit for fix in fixes for edit in fix.edits), None)
    if edit is not None and not stack:
        stack = (Frame(edit.file, "", edit.line),)
    made = finding(
        rule,
        FindingPlace(candidate.changes[0].name, SourcePosition.exact(stack)),
        _message(candidate),
        confidence="likely",
        severity="warning",
        fixes=tuple(fixes),
        subject=candidate.changes[0].name,
    )
    return made if edit is None else replace(made, expected=(saved, None))


def _message(candidate: PricedCandidate) -> str:
    first = next((each for each in candidate.changes if each.kind == "argument"), candidate.changes[0])
    match candidate.kind, first:
        case "a", _:
            return f"nothing keeps the batch sharded here: with {first.spec} the rest of the step sends less"
        case "c", _:
            return f"{first.name} is {first.now}, but its parameter is {first.spec}"
        case _, PricedChange(kind="result", now=None):
            return f"{first.name} is left open, but becomes an argument that is {first.spec}"
        case "b", _:
            return f"{first.name} is returned as {first.now}, but becomes an argument that is {first.spec}"
        case _, PricedChange(kind="constraint", spec=None):
            return f"the constraint to {first.now} sends more than leaving it out"
        case _, PricedChange(kind="constraint"):
            return f"the constraint to {first.now} sends more than {first.spec}"
    return f"{first.name} as {first.now} sends more than as {first.spec}"
