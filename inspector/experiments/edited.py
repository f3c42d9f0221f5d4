"""Edits applied to a copy of the user's source, and a capture of the program with them: no file of theirs is touched.

The text goes to a temporary file, which the capturing process imports in the place of the user's.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ...parsers.source import Source
from ..capture.model import Capture
from ..capture.protocol.request import Request
from ..capture.scratch import Scratch
from ..capture.spawn import last_capture
from ..ir.program import Program
from ..report import Edit, Fix


def edited(program: Program, edits: Iterable[Edit]) -> Mapping[str, bytes] | None:
    """The new text of each file; None where a file is not there, or edits do not fit it or each other."""
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(os.path.normpath(edit.file), []).append(edit)
    texts = {}
    for file, its in by_file.items():
        source = program.file(file)
        text = None if source is None else applied(source, its)
        if text is None:
            return None
        texts[file] = text
    return texts


def diff_of(program: Program, fix: Fix | None) -> tuple[str, ...]:
    """A fix as a unified diff, line by line, without line ends; empty where it has no edits, or they do not fit."""
    texts = None if fix is None else edited(program, fix.edits)
    return tuple(line for file, text in (texts or {}).items() for line in _diff(program, file, text))


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


def _diff(program: Program, file: str, text: bytes) -> Iterator[str]:
    source = program.file(file)
    before = [] if source is None else source.text().splitlines()
    name = os.path.basename(file)
    after = text.decode("utf-8", "replace").splitlines()
    yield from difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=1, lineterm="")


def applied(source: Source, edits: list[Edit]) -> bytes | None:
    """A text with edits; None where they do not fit it, or each other."""
    starts = [0]
    for line in source.data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pieces, done = [], 0
    for edit in sorted(edits, key=lambda each: (each.line, each.column, each.end_line, each.end_column)):
        if not 1 <= edit.line <= edit.end_line < len(starts):
            return None
        start, end = starts[edit.line - 1] + edit.column, starts[edit.end_line - 1] + edit.end_column
        if not done <= start <= end <= len(source.data):
            return None
        pieces += [source.data[done:start], edit.text.encode("utf-8", "replace")]
        done = end
    return b"".join([*pieces, source.data[done:]])
