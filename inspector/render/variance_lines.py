"""In words, how axes came into a value, and the values of a line."""

from __future__ import annotations

from collections.abc import Iterator

from ..report import Report, VariableVariance
from ..variance.entry_chain import entry_chains

MAX_STEPS = 24
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
            way = [_step(each, report) for each in entry_chains(text).of(value, entry)]
            ways.setdefault((f"by {entry.by}{f', {place}' if place else ''}", *way), []).append(entry.axis)
        for (by, *way), axes in ways.items():
            yield f"{', '.join(axes)} {'enters' if len(axes) == 1 else 'enter'} {by}"
            half = MAX_STEPS // 2
            yield from way if len(way) <= MAX_STEPS else (*way[:half], f"  … {len(way) - 2 * half} more", *way[-half:])
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
