"""Edits that are not tried: of other people's files, and of a helper that several constraints go through."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..report import Edit, Report
from ..report.position import is_installed


def obstacle(report: Report, edits: Iterable[Edit]) -> str:
    """Return why a change is not to be made; empty where it may be."""
    edits = tuple(edits)
    foreign = next((edit.file for edit in edits if is_installed(edit.file)), None)
    if foreign is not None:
        return f"{os.path.basename(foreign)} belongs to an installed package"
    callers = _callers(report)
    for edit in edits:
        file = os.path.normpath(edit.file)
        shared = [len(callers.get((file, line), ())) for line in range(edit.line, edit.end_line + 1)]
        if max(shared, default=0) > 1:
            return f"line {edit.line} makes the constraints of {max(shared)} callers: edit the one that is wrong"
    return ""


def _callers(report: Report) -> dict[tuple[str, int], set[tuple[tuple[str, int], ...]]]:
    """The ways in which a program gets to each line that makes a constraint: the call stacks around it."""
    found: dict[tuple[str, int], set[tuple[tuple[str, int], ...]]] = {}
    for each in report.shardings:
        frames = [(os.path.normpath(frame.file), frame.line) for frame in each.source.stack]
        if each.role == "constraint" and frames:
            found.setdefault(frames[0], set()).add(tuple(frames[1:]))
    return found
