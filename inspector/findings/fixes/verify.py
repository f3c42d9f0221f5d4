"""Fixes are verified, not promised: the program is captured again with the edits in a copy of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from ....parsers.sharding_syntax.mesh import join_axes
from ...capture.model import PHASES, Capture, Execution, OutputSummary
from ...capture.protocol.request import Request
from ...capture.spawn import last_capture
from ...ir.types import jax_type
from ...report import Edit, Finding, Report, Trial
from ..rules import rule_named
from ..support.compiled import in_hlo, is_compiled, saving
from .apply import captured_with

MAX_FINDINGS = 12
"""Findings whose fixes are tried; each takes as long as a capture."""

ROUNDING = {"f64": 1e-11, "f32": 1e-4, "bf16": 3e-2, "f16": 1e-2}
"""How far apart the same result may come out, relative to its norm, when it is computed in another order."""

Values = Literal["equal", "close", "differ", "not compared"]

Captures = dict[tuple[Edit, ...], Capture | None]
"""What was captured with each change: several findings may be fixed by one."""


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
    for number in editable[:MAX_FINDINGS]:
        finding = found[number]
        tell(f"trying the change for {finding.rule}")
        fixes = list(finding.fixes)
        for position, fix in enumerate(fixes):
            if fix.edits:
                trial = _tried(before, request, inspect, finding, fix.edits, known)
                fixes[position] = replace(fix, trial=trial)
                if trial.verified:
                    break
        found[number] = replace(finding, fixes=tuple(fixes))
    return replace(report, findings=tuple(found))


def _before(report: Report, request: Request, tell: Callable[[str], None]) -> Report:
    """The report of the unchanged program with values that can be compared."""
    run = report.capture.execution
    if run is None or any(output.digest for output in run.outputs) or not run.outputs:
        return report
    tell("running it as it is")
    again = last_capture(_lean(request))
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
    """What becomes of one finding, and of everything else, with some edits."""
    if edits not in known:
        known[edits] = captured_with(before.program, _lean(request), edits)
    changed = known[edits]
    if changed is None:
        return Trial(False, "the source is not there, or is not what was captured")
    if changed.failure is not None:
        said = changed.failure.message.partition("\n")[0]
        return Trial(False, f"the changed program stops while {PHASES[changed.failure.phase]}: {said}")
    after = inspect(changed)
    values = _values(before.capture.execution, changed.execution)
    trial = Trial(
        verified=False,
        why="",
        before=_counts(before),
        after=_counts(after),
        bytes_before=_bytes(before),
        bytes_after=_bytes(after),
        seconds_before=None if before.cost is None else before.cost.total,
        seconds_after=None if after.cost is None else after.cost.total,
        values=values,
    )
    problem = _problem(before, after, found, trial)
    return replace(trial, verified=problem is None, why=problem or "the finding is gone")


def _problem(before: Report, after: Report, found: Finding, trial: Trial) -> str | None:
    """Why a change is not an improvement."""
    were, are = _by_rule(before), _by_rule(after)
    if are[found.rule] >= were[found.rule]:
        return "the finding is still there"
    # What still could be saved comes up when less hides it; what is wrong was brought in.
    wrong = {each.rule for each in after.findings if each.severity == "error"}
    sizes = trial.bytes_before, trial.bytes_after
    is_less = sizes[0] is not None and sizes[1] is not None and sizes[1] < sizes[0]
    worse = sorted(rule for rule in are if are[rule] > were[rule] and (rule in wrong or not is_less))
    if worse:
        return f"the finding is gone, and {', '.join(worse)} comes up"
    if [value.type for value in before.capture.outputs] != [value.type for value in after.capture.outputs]:
        return "the results have other types"
    if found.severity == "error":
        return None  # it is meant to give another result
    if trial.values == "differ":
        return "the results are not the same"
    if trial.bytes_before is None or trial.bytes_after is None:
        return None
    rule = rule_named(found.rule)
    if rule is not None and rule.saves == "memory":
        return "more is sent" if trial.bytes_after > trial.bytes_before else None
    return "no less is sent" if trial.bytes_after >= trial.bytes_before else None


def _lean(request: Request) -> Request:
    """The request with what a comparison needs, and without what it does not."""
    return replace(request, fingerprints=True, probe="none", reference=False)


def _by_rule(report: Report) -> Counter[str]:
    return Counter(found.rule for found in (*report.findings, *(known.finding for known in report.suppressed)))


def _counts(report: Report) -> tuple[tuple[str, int], ...]:
    """Executions of the compiled program's collectives, by kind and axes."""
    counts: Counter[str] = Counter()
    for each in in_hlo(report):
        counts[f"{each.kind} {join_axes(each.axes or ()) or '?'}"] += each.executions or 1
    return tuple(counts.items())


def _bytes(report: Report) -> int | None:
    return saving(*in_hlo(report), times=None).bytes if is_compiled(report) else None


def _values(before: Execution | None, after: Execution | None) -> Values:
    """Whether two runs gave the same results, for all that can be told."""
    if before is None or after is None or len(before.outputs) != len(after.outputs):
        return "not compared"
    found = {_compared(one, other) for one, other in zip(before.outputs, after.outputs, strict=True)}
    return next((verdict for verdict in ("differ", "not compared", "close") if verdict in found), "equal")


def _compared(one: OutputSummary, other: OutputSummary) -> Values:
    if one.digest is None or other.digest is None:
        return "not compared"
    if one.digest == other.digest:
        return "equal"
    if one.projections is None or other.projections is None:
        return "not compared"
    tolerance = ROUNDING.get(jax_type(one.type).dtype, 0.0) * max(one.projections[0], other.projections[0])
    apart = max(abs(a - b) for a, b in zip(one.projections, other.projections, strict=True))
    return "close" if apart <= tolerance and one.non_finite == other.non_finite else "differ"
