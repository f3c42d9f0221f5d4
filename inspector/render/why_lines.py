"""The reasons for a value's sharding, as lines: the axis, what requested it, how it was propagated; its variance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...parsers.sharding_syntax.mesh import join_axes
from ..report import (
    BoundaryOrigin,
    Collective,
    CollectiveCause,
    Conflict,
    ExplainedStep,
    NodeAxis,
    Report,
    Side,
    VariableVariance,
    Why,
)
from ..report.spelled import executions_text, types_text
from ..units import format_bytes

if TYPE_CHECKING:
    from ..report.changes import Transfer

MAX_STEPS = 4
"""Steps of a propagation path in one line."""


def why_line(found: Why, name: str, report: Report) -> str:
    """`model` on w2 dim 0 ← argument w1 dim 1, via dot_general (line 21, step 5), dot_general (line 20, step 1)."""
    along = f"on {name} dim {found.dim}" if found.dim is not None else f"on {name}"
    head = f"{found.axis} {along} ← {origin_text(found, report)}"
    if not found.steps:
        return head
    steps = found.steps if len(found.steps) <= MAX_STEPS else (*found.steps[: MAX_STEPS - 1], found.steps[-1])
    shown = [step_text(step, report) for step in steps]
    left = len(found.steps) - len(shown)
    return f"{head}, via {', '.join(shown)}{f' and {left} more' if left > 0 else ''}"


def origin_text(found: Why, report: Report) -> str:
    """The origin of an axis, with the dimension there, or its line."""
    place = found.place.text(report.script)
    if isinstance(found.origin, BoundaryOrigin):
        return f"{found.origin}{'' if found.origin.dim is None else f' dim {found.origin.dim}'}"
    return f"{found.origin} ({place})" if place else str(found.origin)


def cause_line(cause: CollectiveCause, report: Report) -> str:
    """The cause of a collective in one sentence."""
    place = cause.place.text(report.script)
    inside = ", ".join(filter(None, (place, cause.rule)))
    operation = f"{cause.operation} ({inside})" if inside else cause.operation
    match cause.effect:
        case "sum":
            verb = "contracts" if cause.is_contraction else "reduces"
            return f"{operation} {verb} over a sharded dimension: {cause.moved}, {cause.before}"
        case "reshard":
            moved = "its operand" if cause.moved is None else cause.moved.of
            return f"{operation} needs {moved} as {cause.after}, but it is {cause.before}"
        case "move":
            return f"{operation} works across the shards of {cause.moved}, {cause.before}"
    how = "without a Shardy rule" if cause.rule is None else "otherwise than by its sharding rule"
    return f"{operation}: partitioned {how}; {cause.moved} is {cause.before}"


def remedy_line(cause: CollectiveCause, report: Report) -> str:
    """The remedy for a collective, or that it is needed; of a sum, what shards the summed dimension.

    Without a sharded dimension its operand would be larger on each device: that is no advice to give.
    """
    cut = _asked_by(cause.origins, report)
    if cause.needed:
        return f"needed: each device has the gradient of its part of the data, to be summed ({cut})"
    match cause.effect:
        case "reshard" if cause.rule is None:
            return f"to avoid it, request {cause.before} there, or keep that dimension unsharded: {cut}"
        case "reshard" if cause.against:
            other = _asked_by(cause.against, report)
            if other == cut:
                return f"to avoid it, constrain one of the operands: both are sharded by the same, {cut}"
            return f"to avoid it, change either: {cut}; or {other}"
        case "sum":
            return cut
        case "move" | "reshard":
            return f"to avoid it, keep that dimension unsharded: {cut}"
    return f"to choose how it is partitioned, constrain its operands: {cut}" if cut else ""


def _asked_by(axes: Iterable[NodeAxis], report: Report) -> str:
    """`data is from argument w1 dim 0 and argument x dim 0`: the origins of each axis, each once."""
    origins: dict[str, dict[str, None]] = {}
    for each in report.on_demand.reasons(axes, 0):
        origins.setdefault(str(each.axis), {})[origin_text(each, report)] = None
    return ", ".join(f"{axis} is from {' and '.join(names)}" for axis, names in origins.items())


def conflict_lines(conflict: Conflict, report: Report) -> Iterator[str]:
    """The operation of a conflict, and each side with its sharding and the reasons."""
    yield conflict_line(conflict, report)
    yield from (f"  {sign} {side_text(side, report)}" for sign, side in sides(conflict))


def conflict_line(conflict: Conflict, report: Report) -> str:
    """The operation and the factor with conflicting shardings."""
    inside = ", ".join(filter(None, (conflict.place.text(report.script), conflict.rule)))
    return f"{conflict.operation} ({inside}): conflicting shardings for {conflict.factor}"


def sides(conflict: Conflict) -> Iterator[tuple[str, Side]]:
    """The sides of a conflict: the chosen and the rejected ones; without a word where that is not known."""
    if conflict.chosen is not None:
        yield "chosen  ", conflict.chosen
    yield from (("rejected", side) for side in conflict.rejected)
    yield from (("        ", side) for side in conflict.undecided)


def side_text(side: Side, report: Report) -> str:
    """The sharding of one side of a conflict, and why."""
    causes = [f"{why.axis} ← {origin_text(why, report)}" for why in side.why]
    causes += [f"{why.axis} shards dim {why.dim} ← {origin_text(why, report)}" for why in side.elsewhere]
    because = f" ({'; '.join(causes)})" if causes else ""
    return f"{side.value}: {join_axes(side.axes) or 'unsharded'}{because}"


def step_text(step: ExplainedStep, report: Report) -> str:
    """`dot_general (line 8, step 35)`: the operation that a step of the propagation went over."""
    number = "" if step.number is None else f"step {step.number}"
    place = ", ".join(filter(None, (step.place.text(report.script), number)))
    operation = "return" if step.operation is None else str(step.operation)
    return f"{operation} ({place})" if place else operation


MAX_COLLECTIVES = 10
"""Collectives that are listed, each with at most `MAX_CAUSES` of the operations that it was combined from."""

MAX_CAUSES = 2

BY = {
    "user": "written here",
    "explicit": "inserted for a reshard or an out_sharding",
    "autodiff": "derived by autodiff",
    "partitioner": "inserted by the partitioner",
    "compiler": "added by the compiler",
    "mixed": "combined from several origins",
}


def transfer_offences(
    transfers: Iterable[tuple[Transfer, int]], stage: str, report: Report, found: Iterable[Collective]
) -> Iterator[str]:
    """Transfers of a report's outline, each by the first of the collectives that it stands for."""
    by_name = {each.name: each for each in found if each.stage == stage}
    these = [(by_name[one.name], count) for one, count in transfers if one.name in by_name]
    return offences(these, report)


def offences(these: Iterable[tuple[Collective, int]], report: Report) -> Iterator[str]:
    """Lines for collectives, each with how often it is there."""
    listed = list(these)
    for collective, count in listed[:MAX_COLLECTIVES]:
        yield from _lines(collective, count, report)
    if len(listed) > MAX_COLLECTIVES:
        yield f"and {len(listed) - MAX_COLLECTIVES} more"


def _lines(collective: Collective, count: int, report: Report) -> Iterator[str]:
    axes = "groups of no axes" if collective.axes is None else join_axes(collective.axes) or "one device each"
    times = f"{count}× " if count > 1 else ""
    runs = (
        "" if collective.executions == 1 else f", executed {executions_text(collective).replace('≤', 'at most')} times"
    )
    by = f", {BY[collective.origin]}" if collective.origin in BY else ""
    direction = "" if collective.direction in ("unknown", "forward") else f", {collective.direction} pass"
    wire = format_bytes(collective.wire_bytes)
    yield f"{times}{collective.kind} over {axes}, {types_text(collective)}, {wire} sent per device{runs}{direction}{by}"
    frame = collective.source.frame
    if frame is not None:
        text = _text(report, frame.file, frame.line)
        yield f"  {frame.file}:{frame.line}, in {frame.function}{f': {text}' if text else ''}"
    elif collective.op_name:
        yield f"  for {collective.op_name}"
    causes = report.on_demand.causes(collective)
    if collective.origin == "partitioner" and not causes and report.program.stage("sdy") is not None:
        yield "  cause not known"
    for cause in causes[:MAX_CAUSES]:
        yield f"  because {cause_line(cause, report)}"
        if remedy := remedy_line(cause, report):
            yield f"  {remedy}"


def _text(report: Report, file: str, line: int) -> str:
    source = report.program.file(file)
    lines = [] if source is None else source.data.decode("utf-8", "replace").split("\n")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


MAX_WAY = 24
"""Equations of one way; of a longer one its beginning and its end."""


def entry_lines(report: Report, equation: str) -> Iterator[str]:
    """For each axis of what an equation makes: where it entered, and the equations on its way from there."""
    text = report.program.jaxpr
    for value in report.variance if text is not None else ():
        if value.equation != equation or text is None:
            continue
        ways: dict[tuple[str, ...], list[str]] = {}
        for entry in value.entered:
            place = entry.source.function_text(report.script)
            way = [_step(each, report) for each in report.on_demand.way(value, entry)]
            ways.setdefault((f"by {entry.by}{f', {place}' if place else ''}", *way), []).append(entry.axis)
        for (by, *way), axes in ways.items():
            yield f"{', '.join(axes)} {'enters' if len(axes) == 1 else 'enter'} {by}"
            half = MAX_WAY // 2
            yield from way if len(way) <= MAX_WAY else (*way[:half], f"  … {len(way) - 2 * half} more", *way[-half:])
        if value.left:
            yield f"{', '.join(value.left)} {'is' if len(value.left) == 1 else 'are'} removed here"


def line_variance(report: Report, file: str, line: int) -> Iterator[str]:
    """For each value that a source line makes inside a shard_map: the axes over which it varies, and those removed."""
    for value in report.variance:
        if not any((frame.file, frame.line) == (file, line) for frame in value.source.stack):
            continue
        own, first = value.source.frame, value.source.stack[0]
        if any(frame is not None and (frame.file, frame.line) == (file, line) for frame in (own, first)):
            over = ", ".join(value.varying) or "none"
            hidden = f" but may vary over {', '.join(value.hidden)}" if value.hidden else ""
            removed = f"; {', '.join(value.left)} removed" if value.left else ""
            yield f"{value.value} = {value.primitive}  {value.type.array}  varies over {over}{hidden}{removed}"


def _step(value: VariableVariance, report: Report) -> str:
    return f"  → {value.value} = {value.primitive}   {value.source.text(report.script)}".rstrip()
