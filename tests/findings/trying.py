"""Experiments without a limit of time, as tests of fixes make them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.experiments.lab import tried
from shardscope.inspector.pipeline import suspected
from shardscope.inspector.report import Finding, Report
from shardscope.inspector.report.policy import EVERYTHING


def verified(report: Report, request: Request, inspect: Callable[[Capture], Report]) -> Report:
    """The report with all fixes tried, as `inspect` makes reports."""
    policy = inspect.keywords.get("policy", EVERYTHING) if isinstance(inspect, partial) else EVERYTHING
    return tried(report, request, policy, 600, search=False)


def tried_in(folder: Path, text: str, rule: str, function: str = "step") -> Finding:
    """The only finding of a rule in a function of a script, with its fixes tried and their values compared."""
    script = folder / "script.py"
    script.write_text(text)
    request = Request(f"{script}:{function}", probe="none", fingerprints=True)
    report = verified(suspected(last_capture(request)), request, suspected)
    (found,) = (each for each in report.findings if each.rule == rule)
    return found
