"""Edits applied to a copy of the user's source, and a capture of the program with them: no file of theirs is touched.

The text goes to a temporary file, which the capturing process imports in the place of the user's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ..capture.model import Capture, CaptureError
from ..capture.protocol.request import Request
from ..capture.scratch import Scratch
from ..capture.spawn import capture
from ..ir.program import Program
from ..pipeline import inspect
from ..report import Edit, Finding, Report
from ..report.changes import Diff
from ..report.edits import edited
from ..report.policy import Policy


def captured_with(
    known: Program,
    request: Request,
    edits: Iterable[Edit],
    is_wanted: Callable[[Capture], bool] = lambda compiled: True,
) -> Capture | None:
    """The capture of a program with edits in its source; None where they cannot be made.

    It is run only if what was compiled `is_wanted`.
    """
    texts = edited(known, edits)
    if not texts:
        return None
    with Scratch() as folder:
        pairs = list(_written(texts, folder, request.directory or os.getcwd()))
        with closing(capture(replace(request, replaced=tuple(pairs), devices=devices_of(known, request)))) as growing:
            is_compiled = False
            for latest in growing:
                if not is_compiled and latest.progress is not None and latest.progress.phase == "run":
                    is_compiled = True
                    if not is_wanted(latest):
                        return replace(latest, progress=None, complete=True)
            return latest


def changes_by(finding: Finding, report: Report, request: Request, policy: Policy) -> Diff:
    """The effect of the fix of a finding, made in a copy of the source.

    Raises:
        CaptureError: there is no such edit, or the program with it cannot be captured.
    """
    if finding.proposal is None:
        raise CaptureError("the fix of this finding is not an edit")
    capture = captured_with(report.program, request, finding.proposal.edits)
    if capture is None:
        raise CaptureError("the source is missing, or differs from what was captured")
    if capture.failure is not None:
        raise CaptureError(f"with the fix, the program stops: {capture.failure.message}")
    return report.diff_to(inspect(capture, policy))


def devices_of(known: Program, request: Request) -> int | None:
    """Use as many fake devices as the capture needed."""
    subject = known.capture.subject
    return subject.device_count if request.target == "cpu" and subject is not None else request.devices


def _written(texts: Mapping[str, bytes], folder: Path, directory: str) -> Iterator[tuple[str, str]]:
    for number, (file, text) in enumerate(texts.items()):
        path = folder / f"{number}.py"
        path.write_bytes(text)
        yield os.path.join(directory, file), str(path)
