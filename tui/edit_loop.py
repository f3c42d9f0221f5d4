"""Capturing again: when the user asks for it, when a file was saved, or with a fix in a copy of the source."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..inspector.capture.model import CaptureError
from ..inspector.capture.protocol.request import Request
from ..inspector.capture.spawn import CaptureHandle, begin
from ..inspector.diff.diff import Diff, diff
from ..inspector.experiments.edited import captured_with
from ..inspector.findings.policy import Policy
from ..inspector.pipeline import inspect
from ..inspector.report import Finding, Report

PERIOD_S = 1.0
"""Seconds between two looks at the files."""

MAX_FILES = 200
"""Files that are looked at."""


class CannotApplyError(Exception):
    """A fix that cannot be tried, and why."""


@dataclass
class EditLoop:
    """The request that is made again; `watch` makes it as soon as a file is saved. `began` is when it was last made."""

    request: Request
    watch: bool = False
    began: float = 0.0

    def __post_init__(self) -> None:
        self.began = time.time()

    def begin(self) -> CaptureHandle:
        """Begin the capture again."""
        self.began = time.time()
        return begin(self.request)

    def changed(self, report: Report | None) -> str | None:
        """A file of the program that was saved after the capture had begun."""
        for file in {} if report is None else dict.fromkeys(_files(report)):
            path = os.path.join(self.request.directory or os.getcwd(), file)
            try:
                if os.stat(path).st_mtime > self.began:
                    return file
            except OSError:
                continue
        return None

    def with_fix(self, report: Report, finding: Finding, policy: Policy) -> Diff:
        """Show the effect of a fix, made in a copy of the source.

        Raises:
            CannotApplyError: there is no such edit, or the program with it cannot be captured.
        """
        fix = finding.proposal
        if fix is None:
            raise CannotApplyError("the fix of this finding is not an edit")
        capture = captured_with(report.program, self.request, fix.edits)
        if capture is None:
            raise CannotApplyError("the source is missing, or differs from what was captured")
        if capture.failure is not None:
            raise CannotApplyError(f"with the fix, the program stops: {capture.failure.message}")
        try:
            return diff(report, inspect(capture, policy))
        except CaptureError as error:
            raise CannotApplyError(str(error)) from error


def _files(report: Report) -> Iterator[str]:
    """The script, and the user's files in the stacks of its collectives and findings."""
    if report.script is not None:
        yield report.script
    stacks = [each.source.stack for each in report.collectives]
    stacks += [each.place.source.stack for each in report.findings]
    yield from list(_own(frame.file for stack in stacks for frame in stack))[:MAX_FILES]


def _own(files: Iterable[str]) -> Iterator[str]:
    return (file for file in dict.fromkeys(files) if "site-packages" not in file)
