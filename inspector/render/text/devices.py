"""What each device holds, and what should be the same on all of them and is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import RenderableType

from ...capture.protocol.values import Probe, Shard
from ...report import Divergence, ProbedValue, Report
from ...units import plural
from ...values.written import array_lines, coordinates_text
from .pieces import data, left_out, section, table

LONGEST = 120
"""Lines after which no further equation is begun."""

MOST_ITERATIONS = 2
MOST_DEVICES = 8
MOST_DIVERGENCES = 12
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


def divergences(report: Report) -> RenderableType | None:
    """Values that are declared the same along an axis, and are not."""
    first = [found for found in report.divergences if found.is_first]
    if not first:
        return None
    shown = table("", "type", "over", "said by", "devices", "iteration", "from")
    for found in first[:MOST_DIVERGENCES]:
        shown.add_row(*map(data, _cells(found, report.script)))
    rest = len(report.divergences) - len(first)
    follow = (
        [data(f"{plural(rest, 'more value')} {'follow' if rest > 1 else 'follows'} from these", "dim")] if rest else []
    )
    title = "Declared the same on all devices, but different"
    return section(title, [shown, *left_out(len(first) - MOST_DIVERGENCES, "value"), *follow])


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


def _cells(found: Divergence, script: str | None) -> Iterable[str]:
    said = {"type": "its type", "inferred": "our inference", "out_specs": "out_specs"}[found.declared]
    iteration = ", ".join(map(str, found.iteration))
    differ = " and ".join(map(str, found.devices))
    return (
        f"{found.value} = {found.primitive}",
        found.type,
        found.axis,
        said,
        differ,
        iteration,
        found.source.text(script),
    )
