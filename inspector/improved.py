"""What is found out about a report by capturing again: why a function does not trace, and whether changes help."""

from __future__ import annotations

from collections.abc import Callable

from .capture.protocol.request import Request
from .findings.fixes.verify import verified
from .findings.policy import Policy
from .report import Report
from .trace_errors.explain import explained


def improved(
    report: Report,
    request: Request,
    policy: Policy,
    *,
    verify: bool,
    tell: Callable[[str], None] = lambda what: None,
) -> Report:
    """The report of a request, explained where it failed, else with the changes tried if they are to be verified."""
    if report.capture.failure is not None:
        return explained(report, request, tell)
    return verified(report, request, policy, tell) if verify else report
