"""The explainers: from a function that does not trace to the story of why, and the fixes, tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache

from ..capture.model import Execution
from ..capture.protocol.request import Request
from ..capture.spawn import last_capture
from ..experiments.edited import captured_with
from ..experiments.lab import tried
from ..experiments.values import Comparison, compared, for_numbers
from ..findings.policy import Policy
from ..pipeline import inspect
from ..report import Experiment, Explanation, Fix, Report
from . import carries, explicit, explicit_bodies, mapped_arguments, operations, specs, unreduced, whole
from .failed import Failed

_Explain = Callable[[Failed, re.Match[str]], Explanation | None]

EXPLAINERS: tuple[tuple[re.Pattern[str], _Explain], ...] = (
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
    (explicit.UPDATE, explicit.explain_update),
    (explicit.SCATTER, explicit.explain_scatter),
    (explicit.CONSTRAINT, explicit.explain_constraint),
    (mapped_arguments.IN_SPECS, mapped_arguments.explain_in_specs),
    (explicit_bodies.CARRY, explicit_bodies.explain_carry),
    (explicit_bodies.BRANCHES, explicit_bodies.explain_branches),
    (explicit_bodies.CONVOLUTION, explicit_bodies.explain_convolution),
    (explicit_bodies.MESHES, explicit_bodies.explain_meshes),
    (whole.WHOLE, whole.explain_whole),
    (unreduced.OTHER_AXES, unreduced.explain_other_axes),
    (unreduced.UNLIKE, unreduced.explain_unlike),
    (unreduced.ONE_SIDE, unreduced.explain_one_side),
    (unreduced.PRODUCT, unreduced.explain_products),
)
"""Patterns of JAX's messages, and the explainers for them."""

UNCHECKED = ("check_vma=off", "axis_types=auto")
"""Changes with which a program may run whose types do not fit."""

MAX_TRIALS = 4
"""Maximum number of fixes that are tried; each takes as long as a capture."""


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
    explanation = next(filter(None, (explain(failed, said) for explain, said in _explainers(failed.said))), None)
    if explanation is None:
        return report
    trials = _Trials(failed, request, tell)
    return replace(report, explanation=replace(explanation, fixes=tuple(trials.tried(explanation.fixes))))


def _explainers(said: str) -> Iterator[tuple[_Explain, re.Match[str]]]:
    """Yield the explainers that know a message, in order, with what they read in it."""
    matches = ((explain, pattern.search(said)) for pattern, explain in EXPLAINERS)
    return ((explain, match) for explain, match in matches if match is not None)


class _Trials:
    """Traces a function with a change; if it may run, also compares what it gives with what it gives unchecked."""

    def __init__(self, failed: Failed, request: Request, tell: Callable[[str], None]) -> None:
        self._program, self._tell = failed.program, tell
        self._explain = next(_explainers(failed.said))[0]
        self._runs = request.live and request.target == "cpu"
        self._request = for_numbers(replace(request, only_trace=not self._runs, live=self._runs))

    def tried(self, fixes: tuple[Fix, ...]) -> Iterator[Fix]:
        """The fixes with which it traces, one for each title, those with which it fails otherwise, and mere advice."""
        traced: set[str] = set()
        others: dict[str, Fix] = {}
        for fix in [each for each in fixes if each.edits][:MAX_TRIALS]:
            if fix.title not in traced:
                self._tell("trying a change")
                found = replace(fix, experiment=self._trial(fix))
                if found.helps:
                    traced.add(fix.title)
                    yield found
                elif found.experiment is not None:
                    others.setdefault(fix.title, found)
        yield from (fix for title, fix in others.items() if title not in traced)
        yield from (fix for fix in fixes if not fix.edits and fix.title not in traced)

    def _trial(self, fix: Fix) -> Experiment | None:
        """The result of a change; None where it could not be tried, or the error is still there, or is unknown."""
        found = captured_with(self._program, self._request, fix.edits)
        if found is None:
            return None
        if found.failure is not None and found.failure.phase != "run":
            has_gone = next(_explainers(found.failure.said), (None,))[0] not in (None, self._explain)
            said = found.failure.message.partition("\n")[0].rstrip(" :")
            return Experiment("does not trace", said) if has_gone else None
        numbers = compared(self._unchecked, found.execution) if self._runs else Comparison("not compared")
        return Experiment("tried", values=numbers.values, changes=numbers.changes)

    @cached_property
    def _unchecked(self) -> Execution | None:
        """A run without checks of types, as far as JAX makes one: of shard_maps, else with no explicit axes."""
        self._tell("running without checks")
        captures = (last_capture(replace(self._request, overrides=(each,))) for each in UNCHECKED)
        return next(filter(None, (each.execution for each in captures)), None)


def explained_or_tried(
    report: Report,
    request: Request,
    policy: Policy,
    *,
    seconds: float | None = None,
    tell: Callable[[str], None] = lambda what: None,
    show: Callable[[Report], None] = lambda report: None,
) -> Report:
    """The report of a request, explained where it failed, else with what came of trying fixes for so many seconds."""
    if report.capture.failure is not None:
        return explained(report, request, tell)
    return report if seconds == 0 else tried(report, request, policy, seconds, tell, show)
