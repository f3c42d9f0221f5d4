"""Collectives that should not be there, in lines: what they are, the line they come from, and what causes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...parsers.sharding_syntax.mesh import join_axes
from ..collectives.spelled import types_text
from ..diff.outline import Transfer
from ..report import Collective, Report
from ..shardings.collective_causes import causes_of
from ..units import format_bytes
from .why_lines import cause_line, remedy_line

MOST = 10
"""Collectives that are told of; of one, the operations that it was merged from are told of as far as `MOST_CAUSES`."""

MOST_CAUSES = 2

BY = {"user": "written here", "partitioner": "inserted by the partitioner", "compiler": "made by the compiler"}


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
    for collective, count in listed[:MOST]:
        yield from _lines(collective, count, report)
    if len(listed) > MOST:
        yield f"and {len(listed) - MOST} more"


def _lines(collective: Collective, count: int, report: Report) -> Iterator[str]:
    axes = "groups of no axes" if collective.axes is None else join_axes(collective.axes) or "one device each"
    times = f"{count}× " if count > 1 else ""
    runs = "" if collective.executions == 1 else f", run {collective.executions or '?'} times"
    by = f", {BY[collective.origin]}" if collective.origin in BY else ""
    direction = "" if collective.direction in ("unknown", "forward") else f", {collective.direction} pass"
    wire = format_bytes(collective.wire_bytes)
    yield f"{times}{collective.kind} over {axes}, {types_text(collective)}, {wire} on the wire{runs}{direction}{by}"
    frame = collective.source.frame
    if frame is not None:
        text = _text(report, frame.file, frame.line)
        yield f"  {frame.file}:{frame.line}, in {frame.function}{f': {text}' if text else ''}"
    elif collective.op_name:
        yield f"  for {collective.op_name}"
    for cause in causes_of(report.program, collective)[:MOST_CAUSES]:
        yield f"  because {cause_line(cause, report)}"
        if remedy := remedy_line(cause, report):
            yield f"  {remedy}"


def _text(report: Report, file: str, line: int) -> str:
    source = report.program.file(file)
    lines = [] if source is None else source.data.decode("utf-8", "replace").split("\n")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
