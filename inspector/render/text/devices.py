"""What each device holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import RenderableType

from ...capture.protocol.values import Probe, Shard
from ...report import ProbedValue, Report
from ...values.elements import array_lines, coordinates_text
from .tables import data, left_out, section

LONGEST = 120
"""Lines after which no further equation is begun."""

MOST_ITERATIONS = 2
MOST_DEVICES = 8
HEIGHT, WIDTH = 2, 8
"""Rows and columns of an array that are shown."""

TITLES = {"before": "BEFORE", "after": "AFTER", "argument": "argument", "output": "output"}


def devices(report: Report) -> RenderableType | None:
    """Values before and after each collective, device by device."""
    inside = [value for value in report.probes if value.probe.path]
    if not inside:
        return None
    sites = [(path, list(values)) for path, values in groupby(inside, key=lambda value: value.probe.path)]
    lines: list[RenderableType] = []
    shown = 0
    for _, values in sites:
        if len(lines) < LONGEST:
            lines += _site(values, report.script)
            shown += 1
    return section("Values on each device", [*lines, *left_out(len(sites) - shown, "equation"), *_apart(report)])


def _apart(report: Report) -> Iterable[RenderableType]:
    """A line where the program that was run for this communicates otherwise than the one that is shown."""
    probed = report.capture.probed
    if probed is not None and probed.shown != probed.probed:
        kinds = sorted({*probed.shown, *probed.probed})
        more = {kind: probed.probed.get(kind, 0) - probed.shown.get(kind, 0) for kind in kinds}
        words = ", ".join(f"{count:+} {kind}" for kind, count in more.items() if count)
        yield data(f"seen in a program of its own, compiled with these values as results: {words}", "dim")


def _site(values: Sequence[ProbedValue], script: str | None) -> list[RenderableType]:
    one = values[0]
    over = f" over {', '.join(one.axes)}" if one.axes else ""
    lines: list[RenderableType] = [data(f"{one.primitive}{over}  {one.source.text(script)}", "bold")]
    iterations = list(dict.fromkeys(value.probe.iteration for value in values))
    for iteration in iterations[:MOST_ITERATIONS]:
        if iteration:
            lines.append(data(f"  iteration {', '.join(map(str, iteration))}"))
        for value in values:
            if value.probe.iteration == iteration:
                lines += _value(value)
    return [*lines, *left_out(len(iterations) - MOST_ITERATIONS, "iteration")]


def _value(value: ProbedValue) -> list[RenderableType]:
    probe = value.probe
    lines: list[RenderableType] = [data(f"  {TITLES[probe.when]} {value.name}:{probe.type}")]
    labels = [_label(probe, shard) for shard in probe.shards]
    width = max(map(len, labels), default=0)
    for number, label in list(enumerate(labels))[:MOST_DEVICES]:
        first, *rest = array_lines(probe, number, HEIGHT, WIDTH)
        lines.append(data(f"    {label.ljust(width)}  {first}"))
        lines += [data(f"    {' ' * width}  {line}") for line in rest]
    return [*lines, *left_out(len(labels) - MOST_DEVICES, "device", f", {_alike(probe)}")]


def _label(probe: Probe, shard: Shard) -> str:
    part = f" [{shard.part}]" if shard.part else ""
    return f"device {shard.device} {coordinates_text(probe.axes, shard.coordinates)}{part}"


def _alike(probe: Probe) -> str:
    different = len({shard.digest for shard in probe.shards})
    return "all equal" if different == 1 else f"{different} different values in all"
