"""Every figure of every chip with its unit and its source, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...targets.chips import PLATFORMS, Chip, Figure, chips_of
from ...units import format_count, format_seconds

PER_SECOND = {"flops": "FLOP/s", "flops_int8": "op/s"}
"""The units of the rates that are not bandwidths."""


def chip_lines() -> Iterator[str]:
    """The figures by platform: those that several chips have alike first and once, then each chip's own."""
    for platform in PLATFORMS:
        chips = tuple(chips_of(platform).values())
        shared = _shared(chips)
        yield f"{platform}, all chips"
        yield from _lines(shared)
        yield ""
        for chip in chips:
            yield f"{platform}:{chip.name}  {chip.title}"
            yield from _lines({name: figure for name, figure in chip.figures.items() if name not in shared})
            yield ""


def _shared(chips: Sequence[Chip]) -> Mapping[str, Figure]:
    first, *others = chips
    return {
        name: figure
        for name, figure in first.figures.items()
        if all(other.figures.get(name) == figure for other in others)
    }


def _lines(figures: Mapping[str, Figure]) -> Iterator[str]:
    for name, figure in figures.items():
        yield f"  {name.replace('_', ' '):<20}{_value(name, figure.value):<15}{figure.source}"


def _value(name: str, value: float) -> str:
    if name.endswith("_share"):
        return f"{value:.0%}"
    if name in PER_SECOND or name.endswith("_bandwidth"):
        return format_count(value) + PER_SECOND.get(name, "B/s")
    return f"{format_count(value)}B" if name.endswith("_bytes") else format_seconds(value)
