"""The time line of a step as trace events, which ui.perfetto.dev and chrome://tracing open.

The format: "Trace Event Format" by N. Duca and D. Sinclair; times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ..capture.output_file import OutputError
from ..report import Report
from ..report.comparison import Comparison
from ..report.spelled import transfer_text
from ..report.timeline import Activity, Timeline
from .overview import subject_text
from .printable import printable

MAX_EVENTS = 200_000
"""Activities that are written; of a longer step, its beginning."""

DIGITS = 3
"""Fractions of a microsecond: viewers count nanoseconds."""

NO_TIMELINE = "no time line: there are no figures for this device; compile for a target, as in --target tpu:v5p:2x2x2"

COMPUTE, WAITING, COPIES, LINKS = range(1, 5)
"""The threads of the trace; transfers that overlap have threads of their own, from `LINKS` on."""


def report_to_perfetto(report: Report) -> str:
    """The trace of one step on each device.

    Raises:
        OutputError: Nothing was compiled for a chip that there are figures for.
    """
    return _trace([report])


def comparison_to_perfetto(comparison: Comparison) -> str:
    """The traces of one step on each of the targets, as processes beside each other.

    Raises:
        OutputError: There are figures for none of them.
    """
    return _trace(comparison.reports)


def _trace(reports: Iterable[Report]) -> str:
    lines = [(found, report) for report in reports if (found := report.on_demand.timeline()) is not None]
    if not lines:
        raise OutputError(NO_TIMELINE)
    chips = ", ".join(dict.fromkeys(found.chip for found, _ in lines))
    said = {
        "program": printable(", ".join(dict.fromkeys(subject_text(report) for _, report in lines))),
        "times": f"estimated by shardscope's cost model for {chips}",
    }
    events = [event | {"pid": number} for number, line in enumerate(lines, 1) for event in _events(*line)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": said}, indent=1)


def _events(found: Timeline, report: Report) -> Iterator[dict[str, Any]]:
    yield _named("process_name", f"each device ({found.chip}, cost model)")
    if found.is_longer(MAX_EVENTS):
        yield _said("process_labels", {"labels": f"only the first {MAX_EVENTS:,} activities of the step"}, 0)
    threads = {COMPUTE: "compute", WAITING: "exposed communication", COPIES: "copies between memories"}
    for moment in found.unrolled(MAX_EVENTS):
        activity, end = moment.activity, moment.end
        match activity.lane:
            case "compute":
                thread = COMPUTE
            case "copies":
                thread = COPIES
            case "links":
                thread = LINKS + moment.beside
                threads.setdefault(thread, "transfers")
        yield _complete(_title(activity), thread, moment.start, end, _facts(activity, report))
        if activity.exposed:
            yield _complete("waits", WAITING, end - activity.exposed, end, {"for": _title(activity)})
    for second, size in found.memory:
        times, counted = {"ts": _microseconds(second)}, {"bytes": size}
        yield {"ph": "C", "cat": "memory", "name": "live values", "tid": 0, **times, "args": counted}
    for thread, name in threads.items():
        yield _named("thread_name", name, thread)
        yield _said("thread_sort_index", {"sort_index": thread}, thread)


def _complete(name: str, thread: int, start: float, end: float, facts: dict[str, Any]) -> dict[str, Any]:
    """An event whose ends are rounded alike: where one ends and the next begins, they do not overlap."""
    first, last = _microseconds(start), _microseconds(end)
    times = {"ts": first, "dur": round(last - first, DIGITS)}
    category = "communication" if thread == WAITING or thread >= LINKS else "device"
    return {"ph": "X", "cat": category, "name": name, "tid": thread, **times, "args": facts}


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, DIGITS)


def _named(kind: str, name: str, thread: int = 0) -> dict[str, Any]:
    return _said(kind, {"name": name}, thread)


def _said(kind: str, facts: dict[str, Any], thread: int) -> dict[str, Any]:
    return {"ph": "M", "cat": "__metadata", "name": kind, "tid": thread, "ts": 0, "args": facts}


def _title(activity: Activity) -> str:
    """`all-gather fsdp`; of what is no transfer between devices, the instruction's name."""
    return printable(transfer_text(activity.collectives) if activity.collectives else activity.instruction.name)


def _facts(activity: Activity, report: Report) -> dict[str, Any]:
    facts = {
        "instruction": activity.instruction.name,
        "opcode": activity.instruction.opcode,
        "from": activity.source.function_text(report.script),
        "op_name": activity.instruction.op_name or "",
    }
    said: dict[str, Any] = {key: printable(value) for key, value in facts.items() if value}
    if activity.collectives:
        said["bytes sent"] = sum(each.wire_bytes or 0 for each in activity.collectives)
        said["exposed µs"] = round(activity.exposed * 1e6, 4)
    if activity.inside and activity.rounds != 1:
        said["rounds"] = "unknown" if activity.rounds is None else activity.rounds
    return said
