"""Edits of the user's source, as new texts and as a diff."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping

from ...parsers.source import Source
from ..ir.program import Program
from . import Edit, Fix


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
