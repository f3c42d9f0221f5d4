"""Edits applied to a copy of the user's source, and a capture of the program with them: no file of theirs is touched.

The text goes to a temporary file, which the capturing process imports in the place of the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..capture.model import Capture
from ..capture.protocol.request import Request
from ..capture.scratch import Scratch
from ..capture.spawn import last_capture
from ..ir.program import Program
from ..report import Edit
from ..report.edits import edited


def captured_with(known: Program, request: Request, edits: Iterable[Edit]) -> Capture | None:
    """The capture of a program with edits in its source; None where they cannot be made."""
    texts = edited(known, edits)
    if not texts:
        return None
    with Scratch() as folder:
        pairs = list(_written(texts, folder, request.directory or os.getcwd()))
        return last_capture(replace(request, replaced=tuple(pairs), devices=devices_of(known, request)))


def devices_of(known: Program, request: Request) -> int | None:
    """Use as many fake devices as the capture needed."""
    subject = known.capture.subject
    return subject.device_count if request.target == "cpu" and subject is not None else request.devices


def _written(texts: Mapping[str, bytes], folder: Path, directory: str) -> Iterator[tuple[str, str]]:
    for number, (file, text) in enumerate(texts.items()):
        path = folder / f"{number}.py"
        path.write_bytes(text)
        yield os.path.join(directory, file), str(path)
