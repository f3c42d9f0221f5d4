"""The explainers: from a function that does not trace to the story of why, and the changes that mend it, tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from ..capture.protocol.request import Request
from ..capture.spawn import last_capture
from ..findings.fixes.verify import captured_with
from ..pipeline import inspect
from ..report import Explanation, Remedy, Report
from . import carries, out_specs, reductions, sizes
from .failed import Failed

EXPLAINERS: tuple[Callable[[Failed], Explanation | None], ...] = (
    out_specs.explain,
    carries.explain,
    carries.explain_branches,
    reductions.explain,
    reductions.explain_cast,
    reductions.explain_unbound,
    sizes.explain,
    sizes.explain_rank,
    sizes.explain_explicit,
)

MOST = 4
"""Remedies that are tried; each takes as long as it takes to trace."""


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

    failed = Failed(report.capture, failure, unchecked)
    explanation = next(filter(None, (explain(failed) for explain in EXPLAINERS)), None)
    if explanation is None:
        return report
    remedies = []
    for number, remedy in enumerate(explanation.remedies):
        if number < MOST and remedy.edits:
            tell("trying a change")
        remedies.append(_tried(report, tracing, remedy) if number < MOST and remedy.edits else remedy)
    remedies.sort(key=lambda remedy: (remedy.works is None, remedy.works is False))
    return replace(report, explanation=replace(explanation, remedies=tuple(remedies)))


def _tried(report: Report, request: Request, remedy: Remedy) -> Remedy:
    found = captured_with(report.capture, request, remedy.edits)
    if found is None:
        return remedy
    why = "" if found.failure is None else found.failure.message.partition("\n")[0]
    return replace(remedy, works=found.failure is None, why=why)
