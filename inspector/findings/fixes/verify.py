"""Fixes are verified, not promised: the program is captured again with the edits in a copy of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ....parsers.sharding_syntax.mesh import join_axes
from ...capture.model import PHASES, Capture, Execution
from ...capture.protocol.request import Request
from ...capture.spawn import last_capture
from ...ir.types import ArrayType, jax_type
from ...report import Edit, Finding, Report, Trial
from ..rule import rank
from ..rules import rule_named
from ..support.compiled import in_hlo, is_compiled, saving
from .apply import captured_with
from .numbers import Comparison, compared, for_numbers

MAX_FINDINGS = 12
"""Findings whose fixes are tried; each takes as long as a capture."""

MAX_BYTES = 2**30
"""Limit of arguments, results and temporaries of all devices up to which programs for other devices run on CPUs."""

MAX_FLOPS = 1e12

CHANGED = "the results are not the same"

Captures = dict[tuple[Edit, ...], Capture | None]
"""Captures by change: one change may fix several findings."""


def verified(
    report: Report,
    request: Request,
    inspect: Callable[[Capture], Report],
    tell: Callable[[str], None] = lambda what: None,
) -> Report:
    """The report with a trial in the fixes that have edits: of each finding up to the first one that works.

    `request` is the one that the report is of, and `inspect` made it of its capture. `tell` hears what is being tried.
    """
    found = list(report.findings)
    editable = [number for number, each in enumerate(found) if any(fix.edits for fix in each.fixes)]
    if not editable:
        return report
    before, known = _before(report, request, tell), Captures()
    on_cpus = _OnCpus(report, request, tell)
    for number in editable[:MAX_FINDINGS]:
        finding = found[number]
        tell(f"trying the change for {finding.rule}")
        fixes = list(finding.fixes)
        for position, fix in enumerate(fixes):
            if fix.edits:
                trial = _tried(before, request, inspect, finding, fix.edits, known)
                if trial.verified and trial.values == "not compared":
                    trial = _with_numbers(trial, finding, on_cpus.compared(fix.edits))
                fixes[position] = replace(fix, trial=trial)
                if trial.verified:
                    break
        found[number] = replace(finding, fixes=tuple(fixes))
    return replace(report, findings=tuple(sorted(_proved(found), key=rank)))


def _proved(found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings, of which notes are warnings where a change was seen to save something: the first one of each change."""
    known = set[tuple[Edit, ...]]()
    for each in found:
        trial, fix = each.trial, each.proposal
        if each.severity == "info" and trial is not None and fix is not None and trial.verified and trial.bytes_saved:
            is_first = fix.edits not in known
            known.add(fix.edits)
            saved = replace(each, severity="warning", saved_bytes=trial.bytes_saved, saved_seconds=trial.seconds_saved)
            yield saved if is_first else each
        else:
            yield each


def _before(report: Report, request: Request, tell: Callable[[str], None]) -> Report:
    """The report of the unchanged program with values that can be compared."""
    run = report.capture.execution
    if run is None or any(output.digest for output in run.outputs) or not run.outputs:
        return report
    tell("running the unchanged program")
    again = last_capture(for_numbers(request))
    changed = replace(report.capture, execution=again.execution or run)
    return replace(report, program=report.program.grown(changed))


def _tried(
    before: Report,
    request: Request,
    inspect: Callable[[Capture], Report],
    found: Finding,
    edits: tuple[Edit, ...],
    known: Captures,
) -> Trial:
    """Return the effect of some edits on one finding, and on everything else."""
    if edits not in known:
        known[edits] = captured_with(before.program, for_numbers(request), edits)
    changed = known[edits]
    if changed is None:
        return Trial(False, "the source is missing, or differs from what was captured")
    if changed.failure is not None:
        said = changed.failure.message.partition("\n")[0]
        return Trial(False, f"the changed program stops while {PHASES[changed.failure.phase]}: {said}")
    after = inspect(changed)
    numbers = compared(before.capture.execution, changed.execution)
    trial = Trial(
        verified=False,
        why="",
        before=_counts(before),
        after=_counts(after),
        bytes_before=_bytes(before),
        bytes_after=_bytes(after),
        seconds_before=None if before.cost is None else before.cost.total,
        seconds_after=None if after.cost is None else after.cost.total,
        values=numbers.values,
        changes=numbers.changes,
    )
    problem = _problem(before, after, found, trial)
    is_gone = _by_rule(after)[found.rule] < _by_rule(before)[found.rule]
    return replace(
        trial, verified=problem is None, why=problem or ("the finding is gone" if is_gone else "less of it is left")
    )


class _OnCpus:
    """Runs of a program for other devices on as many of the CPU's, with changes and without; where it is small."""

    def __init__(self, report: Report, request: Request, tell: Callable[[str], None]) -> None:
        devices = report.capture.subject.device_count if report.capture.subject is not None else None
        self._request = for_numbers(replace(request, target="cpu", devices=devices))
        self._report, self._tell = report, tell
        self._may = request.live and request.target != "cpu" and _is_small(report)
        self._as_it_is: Execution | None = None

    def compared(self, edits: tuple[Edit, ...]) -> Comparison:
        """Return whether the program gives the same numbers with these edits."""
        if not self._may:
            return Comparison("not compared")
        self._tell("comparing its numbers, on CPUs")
        if self._as_it_is is None:
            self._as_it_is = last_capture(self._request).execution
            self._may = self._as_it_is is not None
        changed = captured_with(self._report.program, self._request, edits)
        return compared(self._as_it_is, None if changed is None else changed.execution)


def _is_small(report: Report) -> bool:
    """Return whether a program is fast enough to run on CPUs."""
    memory, cost, subject = report.capture.memory, report.cost, report.capture.subject
    if memory is None or cost is None or subject is None:
        return False
    size = (memory.arguments or 0) + (memory.outputs or 0) + (memory.temporaries or 0)
    return size * subject.device_count <= MAX_BYTES and cost.flops * subject.device_count <= MAX_FLOPS


def _with_numbers(trial: Trial, found: Finding, numbers: Comparison) -> Trial:
    is_changed = numbers.values == "differ" and found.severity != "error"
    trial = replace(trial, values=numbers.values, changes=numbers.changes)
    return replace(trial, verified=False, why=CHANGED) if is_changed else trial


def _problem(before: Report, after: Report, found: Finding, trial: Trial) -> str | None:
    """Return why a change is not an improvement."""
    were, are = _by_rule(before), _by_rule(after)
    is_less = bool(trial.bytes_saved and trial.bytes_saved > 0)
    is_lessened = is_less and are[found.rule] == were[found.rule] and _saved(after, found) < _saved(before, found)
    if are[found.rule] >= were[found.rule] and not is_lessened:
        return "the finding is still there"
    # What still could be saved comes up when less hides it; what is wrong was brought in.
    wrong = {each.rule for each in after.findings if each.severity == "error"}
    worse = sorted(rule for rule in are if are[rule] > were[rule] and (rule in wrong or not is_less))
    if worse:
        return f"the finding is gone, and {', '.join(worse)} appears"
    if _types(before) != _types(after):
        return "the results have other types"
    if found.severity == "error":  # it is meant to give another result
        return next(_wrong_gradients(after, found), None)
    if trial.values == "differ":
        return CHANGED
    if trial.bytes_before is None or trial.bytes_after is None:
        return None
    rule = rule_named(found.rule)
    if rule is not None and rule.saves == "compute":
        return "the step is not faster" if trial.seconds_saved is not None and trial.seconds_saved <= 0 else None
    if rule is not None and rule.saves == "memory":
        return "more bytes are sent" if trial.bytes_after > trial.bytes_before else None
    return "no fewer bytes are sent" if trial.bytes_after >= trial.bytes_before else None


def _wrong_gradients(after: Report, found: Finding) -> Iterator[str]:
    """Reasons for which gradients over the same axes are still wrong: a fix of one error may leave them so."""
    for each in after.findings:
        rule = rule_named(each.rule)
        is_other = each.rule != found.rule or (each.subject != "" and each.subject == found.subject)
        is_wrong = rule is not None and rule.of_gradients and each.severity == "error"
        if is_wrong and is_other and set(each.axes) & set(found.axes):
            yield f"still wrong: {each.message}"


def _types(report: Report) -> list[ArrayType]:
    """Return the types of the results, without their shardings."""
    return [jax_type(value.type) for value in report.capture.outputs]


def _by_rule(report: Report) -> Counter[str]:
    return Counter(found.rule for found in (*report.findings, *(known.finding for known in report.suppressed)))


def _saved(report: Report, found: Finding) -> int:
    """The bytes that all findings of a rule would save."""
    return sum(each.saved_bytes or 0 for each in report.findings if each.rule == found.rule)


def _counts(report: Report) -> tuple[tuple[str, int], ...]:
    """Executions of the compiled program's collectives, by kind and axes."""
    counts: Counter[str] = Counter()
    for each in in_hlo(report):
        counts[f"{each.kind} {join_axes(each.axes or ()) or '?'}"] += each.executions or 1
    return tuple(counts.items())


def _bytes(report: Report) -> int | None:
    return saving(*in_hlo(report), times=None).bytes if is_compiled(report) else None
