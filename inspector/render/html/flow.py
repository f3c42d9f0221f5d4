"""The origin of a sharding: boxes from what requested it, over the operations that it passed, to the value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...report import CollectiveCause, Report, ShardedValue, Why
from ...shardings.explained import why
from ..why_lines import cause_line, origin_text, remedy_line, step_text
from .elements import element, facts, text

MAX_STEPS = 12
"""Steps of one flow, those next to the value."""


def flows(value: object, report: Report) -> str:
    """The flow of each propagated axis of a value, and what else is known of it."""
    if not isinstance(value, ShardedValue):
        return ""
    ways = [each for each in why(report.program, value) if each.steps]
    known = facts(
        [
            ("type", str(value.type)),
            ("per device", "" if value.local_type is None else str(value.local_type)),
            ("from", value.source.function_text(report.script)),
        ]
    )
    return known + "".join(_flow(each, report) for each in ways) if ways else ""


def _flow(found: Why, report: Report) -> str:
    steps = list(reversed(found.steps[:MAX_STEPS]))
    first = origin_text(found, report)
    boxes = [f"{found.axis} on {found.root}: {first}"]
    left_out = found.omitted + len(found.steps) - len(steps)
    boxes += [f"{left_out} more steps"] if left_out else []
    for step in steps:
        boxes.append(f"{step_text(step, report)}: {step.target}")
    return _boxes(boxes)


def cause_flows(causes: Iterable[CollectiveCause], report: Report) -> Iterator[str]:
    """The causes of inserted collectives: the value's sharding, the operation, and the sharding that it needs."""
    for cause in causes:
        yield element("p", text(cause_line(cause, report)))
        if cause.moved is not None and cause.before is not None and cause.after is not None:
            place = cause.place.text(report.script)
            operation = f"{cause.operation}{f' ({place})' if place else ''}"
            yield _boxes([f"{cause.moved}: {cause.before}", operation, str(cause.after)])
        if remedy := remedy_line(cause, report):
            yield element("p", text(remedy), "aside")


def _boxes(boxes: Iterable[str]) -> str:
    return element("ol", "".join(element("li", text(box)) for box in boxes), "flow")
