"""Updates of a screen from an arriving report: known content and the selection stay."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from ..inspector.capture.model import PHASES, Capture, Failure
from ..inspector.render.tables.collectives import key_of
from ..inspector.report import Collective, Finding, Report, ShardedValue
from ..inspector.report.places import SourceLine
from .entry_details import Selected
from .stage_pane import label_of

STARTING = "starting"
"""Work in progress before anything has arrived: a process that starts, or a file that is read."""


def analysed(capture: Capture) -> Capture:
    """A capture without what no report depends on."""
    return replace(capture, progress=None, stdout="", stderr="", timings={}, complete=False)


def waiting_for(capture: Capture, reported: Capture | None) -> str:
    """Return what is in progress; empty once all of a capture is analyzed."""
    if capture.progress is not None:
        return PHASES[capture.progress.phase]
    if reported is not None and analysed(reported) == analysed(capture):
        return ""
    if not (capture.stages or capture.failure or capture.complete):
        return STARTING
    return f"reading {label_of(capture.stages[-1].name)}" if capture.stages else "analyzing"


_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def failing_line(capture: Capture) -> SourceLine | None:
    """The innermost line of the script in the traceback of a failure."""
    script, failure = capture.script_text, capture.failure
    if script is None or failure is None:
        return None
    name = os.path.basename(script.name)
    lines = [int(line) for file, line in _FRAME.findall(failure.details) if os.path.basename(file) == name]
    return SourceLine(script.name, lines[-1]) if lines else None


def explained_lines(report: Report) -> tuple[int, ...]:
    """The lines of the script in the steps of an explanation, in their order."""
    steps = () if report.explanation is None else report.explanation.steps
    name = "" if report.script is None else os.path.basename(report.script)
    frames = [step.source.frame for step in steps]
    return tuple(frame.line for frame in frames if frame is not None and os.path.basename(frame.file) == name)


def merged(before: Report | None, arrived: Report, *, whole: bool) -> Report:
    """The report to show: a first look at a program knows less than the report before it."""
    if whole or before is None:
        return arrived
    return replace(before, program=arrived.program, meshes=arrived.meshes, shardings=arrived.shardings)


def same_entry(selected: Selected | None, report: Report) -> Selected | None:
    """Return the selected entry's equal in another report, or else the entry of the same place.

    None where a finding, a collective or a failure is there no more.
    """
    match selected:
        case Finding():
            same = (f for f in report.findings if (f.rule, f.place) == (selected.rule, selected.place))
            alike = (f for f in report.findings if (f.rule, f.place.what) == (selected.rule, selected.place.what))
            return next(same, None) or next(alike, None)
        case Collective():
            return _same_collective(selected, report)
        case ShardedValue():
            alike_values = (v for v in report.shardings if (v.role, v.name) == (selected.role, selected.name))
            return selected if selected in report.shardings else next(alike_values, selected)
        case Failure():
            return report.capture.failure
    return selected


def _same_collective(selected: Collective, report: Report) -> Collective | None:
    found = [each for each in report.collectives if each.stage == selected.stage]
    same = (each for each in found if key_of(each) == key_of(selected) and each.kind == selected.kind)
    function = selected.source.frame.function if selected.source.frame is not None else ""
    alike = (
        each
        for each in found
        if (each.kind, each.axes, each.direction) == (selected.kind, selected.axes, selected.direction)
        and (each.source.frame.function if each.source.frame is not None else "") == function
    )
    return next(same, None) or next(alike, None)
