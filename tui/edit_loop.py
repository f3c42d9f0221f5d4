"""Capturing again: when the user asks for it, or when a file was saved."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..inspector.capture.model import Capture, Failure
from ..inspector.capture.protocol.request import Request, is_file, split_function
from ..inspector.capture.spawn import CaptureHandle, begin
from ..inspector.report import Report

PERIOD_S = 1.0
"""Seconds between two looks at the files."""

MAX_FILES = 1000
"""Files that are looked at."""

Identity = tuple[int, int, int]
"""The time of the last change in nanoseconds, the inode, and the size of a file; of a folder, its inode."""


@dataclass
class EditLoop:
    """The request that is made again; `watch` makes it as soon as a file is saved. `began` is when it was last made.

    It follows all files that the program was ever seen to consist of, also while the program is broken, and those that
    it lacks.
    """

    request: Request
    watch: bool = False
    began: float = field(default_factory=time.time)
    _files: dict[str, Identity | None] = field(default_factory=dict)
    _gone: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        place, _ = split_function(self.request.function)
        if is_file(place):
            self.learn(Capture(files=(place,)))

    def begin(self) -> CaptureHandle:
        self.note()
        return begin(self.request)

    def note(self) -> None:
        """Take the files as they are for those that are captured."""
        self.began = time.time()
        self._files = {file: self._identity(file) for file in self._files}

    def learn(self, capture: Capture, others: Iterable[str] = ()) -> None:
        """Follow the files of a capture, and those that it lacks. What was saved since it began counts as changed."""
        lacked = () if capture.failure is None else tuple(self._lacked(capture.failure))
        for file in (*capture.files, *others, *lacked):
            if file not in self._files and len(self._files) < MAX_FILES and "site-packages" not in file:
                identity = self._identity(file)
                is_new = identity is not None and identity[0] > self.began * 1e9
                self._files[file] = None if is_new else identity

    def _lacked(self, failure: Failure) -> Iterator[str]:
        """The places where a file or a module could be that an error names."""
        names = re.findall(r"'([\w./-]+)'", failure.message)[:4]
        existing = (file for file, identity in self._files.items() if identity is not None)
        for folder in dict.fromkeys(("", *map(os.path.dirname, existing))):
            for name in names:
                module = os.path.join(folder, *name.split("."))
                yield from (os.path.join(folder, name), module, f"{module}.py", os.path.join(module, "__init__.py"))

    def changed(self) -> str | None:
        """A file of the program that was saved after the capture had begun, or is gone for more than a moment."""
        found = {file: self._identity(file) for file in self._files}
        differing = [file for file, identity in found.items() if identity != self._files[file]]
        gone, self._gone = self._gone, frozenset(file for file in differing if found[file] is None)
        return next((file for file in differing if file in gone or file not in self._gone), None)

    def _identity(self, file: str) -> Identity | None:
        try:
            status = os.stat(os.path.join(self.request.directory or os.getcwd(), file))
        except (OSError, ValueError):
            return None
        is_file = stat.S_ISREG(status.st_mode)
        return (status.st_mtime_ns, status.st_ino, status.st_size) if is_file else (0, status.st_ino, 0)


def files_of(report: Report) -> Sequence[str]:
    """The user's files beside those that were imported: the script, and those in stacks of collectives and findings."""
    stacks = [each.source.stack for each in report.collectives]
    stacks += [each.place.source.stack for each in report.findings]
    frames = dict.fromkeys(frame.file for stack in stacks for frame in stack)
    return [*([] if report.script is None else [report.script]), *frames]
