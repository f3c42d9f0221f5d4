"""Capturing again: when the user asks for it, when a file was saved, or with a fix in a copy of the source."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..inspector.capture.model import CaptureError
from ..inspector.capture.protocol.request import Request, is_file, split_function
from ..inspector.capture.spawn import CaptureHandle, begin
from ..inspector.diff.diff import Diff, diff
from ..inspector.experiments.edited import captured_with
from ..inspector.findings.policy import Policy
from ..inspector.pipeline import inspect
from ..inspector.report import Finding, Report

PERIOD_S = 1.0
"""Seconds between two looks at the files."""

MAX_FILES = 1000
"""Files that are looked at."""

Identity = tuple[int, int, int]
"""The time of the last change in nanoseconds, the inode, and the size of a file."""


class CannotApplyError(Exception):
    """A fix that cannot be tried, and why."""


@dataclass
class EditLoop:
    """The request that is made again; `watch` makes it as soon as a file is saved. `began` is when it was last made.

    It follows all files that the program was ever seen to consist of, also while the program is broken.
    """

    request: Request
    watch: bool = False
    began: float = 0.0
    _files: dict[str, Identity | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.began = time.time()
        place, _ = split_function(self.request.function)
        if is_file(place):
            self._files[place] = self._identity(place)

    def begin(self) -> CaptureHandle:
        """Begin the capture again."""
        self.note()
        return begin(self.request)

    def note(self) -> None:
        """Take the files as they are for those that are captured."""
        self.began = time.time()
        self._files = {file: self._identity(file) for file in self._files}

    def learn(self, files: Iterable[str]) -> None:
        """Follow more files. One that was saved after the capture had begun counts as changed."""
        for file in files:
            if file not in self._files and len(self._files) < MAX_FILES and "site-packages" not in file:
                identity = self._identity(file)
                is_new = identity is not None and identity[0] > self.began * 1e9
                self._files[file] = None if is_new else identity

    def changed(self) -> str | None:
        """A file of the program that was saved after the capture had begun; also by a file that takes its place."""
        for file, known in self._files.items():
            identity = self._identity(file)  # none for the moment in which another file takes its place
            if identity is not None and identity != known:
                return file
        return None

    def _identity(self, file: str) -> Identity | None:
        try:
            status = os.stat(os.path.join(self.request.directory or os.getcwd(), file))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

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


def files_of(report: Report) -> Sequence[str]:
    """The user's files: those that were imported, the script, and those in the stacks of collectives and findings."""
    stacks = [each.source.stack for each in report.collectives]
    stacks += [each.place.source.stack for each in report.findings]
    frames = dict.fromkeys(frame.file for stack in stacks for frame in stack)
    return [*report.capture.files, *([] if report.script is None else [report.script]), *frames]
