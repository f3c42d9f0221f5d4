"""Requests that may cost less with another spec, as findings to be tried."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...parsers.source import Frame
from ..findings.fixes.edits import Edits
from ..findings.rules import rule_of, suspect
from ..report import Edit, Experiment, Finding, Fix, Report, SourcePosition
from ..report.position import is_installed
from .pricing import PricedCandidate, PricedChange, Prices
from .uses import tree_of
from .written import fixes_of, place_of


def obstacle(report: Report, edits: Iterable[Edit]) -> str:
    """Return why a change is not to be made; empty where it may be."""
    edits = tuple(edits)
    foreign = next((edit.file for edit in edits if is_installed(edit.file)), None)
    if foreign is not None:
        return f"{os.path.basename(foreign)} belongs to an installed package"
    callers = _callers(report)
    for edit in edits:
        file = os.path.normpath(edit.file)
        shared = [callers.get((file, line), {}) for line in range(edit.line, edit.end_line + 1)]
        most = max((len(each) for each in shared if len(set(each.values())) > 1), default=0)
        if most:
            return f"line {edit.line} makes the constraints of {most} callers: edit the one that is wrong"
    return ""


def _callers(report: Report) -> dict[tuple[str, int], dict[tuple[tuple[str, int], ...], str | None]]:
    """The ways in which a program gets to each line that makes a constraint: the call stacks around it, with specs."""
    found: dict[tuple[str, int], dict[tuple[tuple[str, int], ...], str | None]] = {}
    for each in report.shardings:
        frames = [(os.path.normpath(frame.file), frame.line) for frame in each.source.stack]
        if each.role == "constraint" and frames:
            found.setdefault(frames[0], {})[tuple(frames[1:])] = each.spec
    return found


RULE = "SS23"
"""The rule of communication that follows from requests."""

WORK_RULES = ("SS29", "SS33")
"""The rules of work that devices do in copies; that of shares of it first."""

MEMORY_RULE = "SS12"
"""That of copies, of which devices may use parts alone."""

MAX_TRIED = 8
MAX_OF_ONE_PRICE = 2
"""Changes of one price are most often one program."""

MAX_DOUBTFUL = 2
"""Changes that are tried besides, where a price may be too low."""

MAX_IDEAS = 1


def with_suspects(found: Sequence[Finding], report: Report, priced: Prices) -> list[Finding]:
    """Some findings, of which those that are about the same have the candidates as further fixes; then the others."""
    result = list(found)
    for each, fixes in _suspects(report, priced):
        about = {change.name for change in each.changes} | {
            (frame.file, frame.line, frame.column)
            for change in each.changes
            if change.kind == "constraint"
            for frame in change.stack[:1]
        }
        wanted = WORK_RULES if priced.shares_work(each) else ()
        hosts = [
            number
            for number, other in enumerate(result)
            if (about & {other.subject, _position(other)} and _asks(other)) or other.rule in wanted
        ]
        for number in hosts:
            own = result[number]
            known = {fix.edits for fix in own.fixes}
            more = tuple(fix for fix in fixes if fix.edits and fix.edits not in known)
            expected = max(int(priced.spared(each)), own.expected[0] or 0)
            result[number] = replace(own, fixes=(*own.fixes, *more), expected=(expected, own.expected[1]))
        if not hosts:
            result.append(_finding(priced, each, fixes))
    return result


def _asks(found: Finding) -> bool:
    """Return whether a finding is of a request, and of nothing that follows from it."""
    return rule_of(found).is_observation and not rule_of(found).is_outcome


def _position(found: Finding) -> tuple[str, int, int] | None:
    frame = found.place.source.frame
    return None if frame is None else (frame.file, frame.line, frame.column)


def _suspects(report: Report, priced: Prices) -> Iterator[tuple[PricedCandidate, list[Fix]]]:
    """Yield each of the cheapest candidates that an edit can express, and one that none can, with ways to write it."""
    counts: Counter[int] = Counter()
    known: set[Edits] = set()
    ideas = tried = 0
    for number, each in enumerate((*priced.candidates, *priced.doubtful)):
        key, most = round(each.price), MAX_TRIED + (number >= len(priced.candidates)) * MAX_DOUBTFUL
        if counts[key] >= MAX_OF_ONE_PRICE or tried >= most:
            continue
        found = [fix for fix in fixes_of(report, each) if not (fix.edits and obstacle(report, fix.edits))]
        fixes = [fix for fix in found if fix.edits not in known]
        known.update(fix.edits for fix in fixes if fix.edits)
        is_idea = not any(fix.edits for fix in found)
        if not fixes or (is_idea and ideas >= MAX_IDEAS):
            continue
        ideas, tried = ideas + is_idea, tried + (not is_idea)
        counts[key] += not is_idea
        yield each, fixes


def _finding(priced: Prices, candidate: PricedCandidate, fixes: list[Fix]) -> Finding:
    shares_work, name = priced.shares_work(candidate), candidate.changes[0].name
    stack = place_of(candidate)
    edit = next((edit for fix in fixes for edit in fix.edits), None)
    if edit is not None and not stack:
        stack = (Frame(edit.file, "", edit.line),)
    edited = edit and next((n for n, at in enumerate(stack) if (at.file, at.line) == (edit.file, edit.line)), 0)
    return replace(
        suspect(
            WORK_RULES[0] if shares_work else MEMORY_RULE if candidate.kind == "f" else RULE,
            name,
            SourcePosition.exact(stack[edited or 0 :]),
            _message(candidate, shares_work=shares_work),
            fixes,
            expected=None if edit is None else int(priced.spared(candidate)),
        ),
        subject=name,
    )


def confirmed(found: Finding) -> Finding:
    """A suspect as what it is once trials have shown so: it costs more, or sends no more."""
    done = [fix.experiment for fix in found.fixes if fix.edits]
    said = found.message
    if any(each is not None and each.helps for each in done):
        said = re.sub(r"\bmay (cost|send|compute)\b", r"\1s", said).replace(", or send less", ", or sends less")
    elif done and all(each is not None and _saves_nothing(each) for each in done):
        said = re.sub(r"\bmay (?:cost|send) (more|less)\b", r"sends no \1", said)
    return replace(found, message=said)


def _saves_nothing(done: Experiment) -> bool:
    before, after = done.before.bytes, done.after.bytes
    return before is not None and after is not None and after >= before


def _message(candidate: PricedCandidate, *, shares_work: bool) -> str:
    first = next((each for each in candidate.changes if each.kind == "argument"), candidate.changes[0])
    if shares_work:
        name = first.name if first.kind in ("argument", "result") else "this"
        return f"with {name} as {first.spec} each device may compute less, or send less"
    match candidate.kind, first:
        case "f", _:
            return f"each device holds more of {first.name} than it uses, which is {first.spec}"
        case _, PricedChange(kind="use"):
            tree = tree_of([each.name for each in candidate.changes])
            return f"{tree} stays sharded where it is used: gathered before that, the rest of the step may send less"
        case "a", _:
            return f"nothing is requested here: as {first.spec} the rest of the step may send less"
        case "c", _:
            return f"{first.name} is {first.now}, but its parameter is {first.spec}"
        case _, PricedChange(kind="result", now=None):
            return f"{first.name} is left open, but becomes an argument that is {first.spec}"
        case "b", _:
            return f"{first.name} is returned as {first.now}, but becomes an argument that is {first.spec}"
        case _, PricedChange(kind="constraint", spec=None):
            return f"the constraint to {first.now} may cost more than leaving it out"
        case _, PricedChange(kind="constraint"):
            return f"the constraint to {first.now} may cost more than {first.spec}"
    return f"{first.name} as {first.now} may cost more than as {first.spec}"
