"""The explainers: from a function that does not trace to the story of why, and the fixes, tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

from ..capture.protocol.request import Request
from ..capture.spawn import last_capture
from ..findings.fixes.apply import captured_with
from ..findings.fixes.verify import verified
from ..findings.policy import Policy
from ..pipeline import inspect
from ..report import Explanation, Fix, Report, Trial
from . import carries, explicit, operations, specs, unreduced
from .failed import Failed

EXPLAINERS: tuple[tuple[re.Pattern[str], Callable[[Failed, re.Match[str]], Explanation | None]], ...] = (
    (specs.LACKS_AXES, specs.explain_lacking_axes),
    (carries.CARRY, carries.explain_carry),
    (carries.BRANCHES, carries.explain_branches),
    (operations.MIXED, operations.explain_mixed),
    (operations.CAST, operations.explain_cast),
    (operations.UNBOUND, operations.explain_unbound),
    (specs.INDIVISIBLE, specs.explain_indivisible),
    (specs.TOO_LONG, specs.explain_too_long),
    (operations.AMBIGUOUS, operations.explain_explicit),
    (explicit.BROADCAST, explicit.explain_broadcast),
    (explicit.ALIKE, explicit.explain_alike),
    (explicit.ILLEGAL, explicit.explain_illegal),
    (explicit.CONTRACTED, explicit.explain_contracted),
    (explicit.LOOKUP, explicit.explain_lookup),
    (explicit.RESHAPE, explicit.explain_reshape),
    (explicit.ALONG, explicit.explain_along),
    (unreduced.OTHER_AXES, unreduced.explain_other_axes),
    (unreduced.UNLIKE, unreduced.explain_unlike),
    (unreduced.ONE_SIDE, unreduced.explain_one_side),
)
"""What JAX says, and who can explain that."""

MAX_TRIALS = 4
"""Of the fixes; each takes as long as it takes to trace."""


def explained(report: Report, request: Request, tell: Callable[[str], None] = lambda what: None) -> Report:
    """The report with an explanation, if its capture ended while tracing and one of the explainers knows why.

    `request` is the one that the capture is of. `tell` hears what is being done.
    """
    failure = report.capture.failure
    if failure is None or failure.kind != "function" or failure.phase != "trace":
        return report
    tracing = replace(request, only_trace=True, live=False)

    @lru_cache(maxsize=1)
    def unchecked() -> Report | None:
        tell("tracing without checks")
        found = last_capture(replace(tracing, overrides=("check_vma=off",)))
        return None if found.failure is not None else inspect(found)

    failed = Failed(report.program, failure, unchecked)
    matches = ((explain, pattern.search(failed.said)) for pattern, explain in EXPLAINERS)
    explanation = next(filter(None, (explain(failed, said) for explain, said in matches if said is not None)), None)
    if explanation is None:
        return report
    fixes = tuple(_tried(report, tracing, explanation.fixes, tell))
    return replace(report, explanation=replace(explanation, fixes=fixes))


def _tried(report: Report, request: Request, fixes: tuple[Fix, ...], tell: Callable[[str], None]) -> Iterator[Fix]:
    """The fixes with which the function traces, one for each title, then those that take a person to write them."""
    traced: set[str] = set()
    for fix in [each for each in fixes if each.edits][:MAX_TRIALS]:
        if fix.title not in traced:
            tell("trying a change")
            tried = replace(fix, trial=_trial(report, request, fix))
            if tried.verified:
                traced.add(fix.title)
                yield tried
    yield from (fix for fix in fixes if not fix.edits and fix.title not in traced)


def _trial(report: Report, request: Request, fix: Fix) -> Trial | None:
    found = captured_with(report.program, request, fix.edits)
    if found is None:
        return None
    why = "" if found.failure is None else found.failure.message.partition("\n")[0]
    return Trial(found.failure is None, why)


def explained_or_verified(
    report: Report,
    request: Request,
    policy: Policy,
    *,
    verify: bool,
    tell: Callable[[str], None] = lambda what: None,
) -> Report:
    """The report of a request, explained where it failed, else with its fixes tried if they are to be verified."""
    if report.capture.failure is not None:
        return explained(report, request, tell)
    return verified(report, request, partial(inspect, policy=policy), tell) if verify else report
