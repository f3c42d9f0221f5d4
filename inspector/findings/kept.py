"""Findings with what came of trying their fixes, as a saved capture keeps them."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from ...parsers.record import Record
from ..report import Elsewhere, Finding, Report
from ..report.policy import Policy
from .rules import OF_ID


class Kept(Record, frozen=True):
    """The findings of a report, and its cost on another target."""

    findings: tuple[Finding, ...]
    elsewhere: Elsewhere | None = None


def kept(report: Report) -> bytes:
    """Return the findings of a report as JSON; nothing where none of their fixes was tried."""
    is_tried = any(fix.experiment is not None for found in report.findings for fix in found.fixes)
    return msgspec.json.encode(Kept(report.findings, report.elsewhere)) if is_tried or report.elsewhere else b""


def with_kept(report: Report, policy: Policy) -> Report:
    """The report with the findings that its capture keeps, of which rules find anew what experiments are no part of."""
    if not report.capture.tried:
        return report
    try:
        known = msgspec.json.decode(report.capture.tried, type=Kept)
    except (msgspec.DecodeError, RecursionError):  # in a file that someone has changed
        return report
    left_out = {_key(each.finding) for each in report.suppressed}
    chosen = [each for each in known.findings if each.rule in OF_ID and policy.wants(each.rule)]
    wanted = [each for each in chosen if _key(each) not in left_out]
    keys = set(map(_key, wanted))
    again = (each for each in report.findings if _key(each) not in keys)
    return replace(report, findings=(*wanted, *again), elsewhere=known.elsewhere)


def _key(found: Finding) -> tuple[str, str, str, str]:
    return found.rule, found.place.what, found.place.text, found.message
