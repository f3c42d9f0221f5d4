"""Explanations of failures, for reports and traces."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..capture.environment import DEFAULT_DEVICES
from ..capture.model import WAITS, Failure
from ..capture.protocol.request import Request, is_file, split_function
from ..capture.spawn import last_capture
from ..experiments.lab import tried
from ..pipeline import inspect
from ..report import Explanation, Report
from ..report.policy import Policy
from ..report.traces import Trace
from ..targets.target import parse_target
from .remedies import explained_run
from .trying import Command


def explained(report: Report, request: Request, tell: Callable[[str], None] = lambda what: None) -> Report:
    """The report with an explanation, if its capture ended with an error that is known.

    `request` is the one that the capture is of. `tell` hears what is being done.
    """
    failure = report.capture.failure
    place, function = split_function(request.function)
    if failure is None or failure.kind == "usage" or failure.type == WAITS:
        return report
    if not is_file(place) or not place.endswith(".py"):
        return report
    tracing = replace(request, only_trace=True, live=False)

    @lru_cache(maxsize=1)
    def unchecked() -> Report | None:
        tell("tracing without checks")
        found = last_capture(replace(tracing, overrides=("check_vma=off",)))
        return None if found.failure is not None else inspect(found)

    subject = report.capture.subject
    devices = failure.devices if subject is None else subject.device_count
    command = Command(
        os.path.realpath(os.path.join(request.directory or os.getcwd(), place)),
        request.argv,
        devices or request.devices or parse_target(request.target).devices or DEFAULT_DEVICES,
        request.python,
        request.directory,
        request.encode() if function else "",
    )
    explanation = _explained(command, failure, tell, unchecked if failure.phase == "trace" else lambda: None)
    return report if explanation is None else replace(report, explanation=explanation)


def _explained(
    command: Command, failure: Failure | None, tell: Callable[[str], None], unchecked: Callable[[], Report | None]
) -> Explanation | None:
    try:
        return explained_run(command, failure, tell, unchecked)
    except OSError:  # no process can be started: the failure stands by itself
        return None


def explained_trace(trace: Trace, wanted: int | None = None, tell: Callable[[str], None] = lambda what: None) -> Trace:
    """The trace of one process, on as many fake devices as were `wanted`, with an explanation of its script's error."""
    command = trace.command
    scripts = [number for number, word in enumerate(command[:2]) if word.endswith(".py")]
    if not trace.status or not scripts or len(trace.processes) > 1:
        return trace
    process = trace.processes[0] if trace.processes else None
    backend = None if process is None else process.backend
    devices = backend.device_count if backend is not None and backend.platform == "cpu" else wanted
    script = Path(command[scripts[0]]).resolve()
    started = Command(str(script), tuple(command[scripts[0] + 1 :]), devices, python=command[0] if scripts[0] else None)
    failure = None if process is None else process.failure
    explanation = _explained(started, failure, tell, lambda: None)
    return trace if explanation is None else replace(trace, explanation=explanation)


def explained_or_tried(
    report: Report,
    request: Request,
    policy: Policy,
    *,
    seconds: float | None = None,
    tell: Callable[[str], None] = lambda what: None,
    show: Callable[[Report], None] = lambda report: None,
) -> Report:
    """The report of a request, explained where it failed, else with what came of trying fixes for so many seconds.

    Both run the script again; with 0 seconds nothing does.
    """
    if seconds == 0:
        return report
    if report.capture.failure is not None:
        return explained(report, request, tell)
    return tried(report, request, policy, seconds, tell, show)
