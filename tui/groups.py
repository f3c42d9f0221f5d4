"""Groups of devices in words: all of them where they are few, else the rule, and one of them in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from ..parsers.sharding_syntax.replica_groups import Groups
from .mesh_grid import Traffic
from .painted import data

MAX_GROUPS = 8
"""Groups that are all spelled out, each in a colour of its own."""

MAX_DEVICES = 64
"""Devices in groups that are all spelled out."""

MAX_MEMBERS = 512
"""Devices of one group that are spelled out."""


def are_many(groups: Groups) -> bool:
    """Return whether groups are shown one at a time."""
    return len(groups) > MAX_GROUPS or sum(map(len, groups)) > MAX_DEVICES


def shown_group(traffic: Traffic) -> Iterator[Content]:
    """Say which of many groups is shown."""
    if traffic.shown is not None:
        count = f"{traffic.shown + 1:,} of {len(traffic.groups):,}"
        yield Content.assemble(f"{'chain' if traffic.pairs else 'group'} {count}", ("   , . the others", "$aside"))


def group_lines(traffic: Traffic, devices: Sequence[int], width: int) -> Iterator[Content]:
    """The groups, or the one that is shown, as lists of devices; no number is broken."""
    if traffic.shown is None:
        yield from _filled([_spelled(group, traffic, devices) for group in traffic.groups], "  ", width)
        return
    yield from _filled([_spelled(traffic.groups[traffic.shown], traffic, devices)], "", width)


def _spelled(group: Sequence[int], traffic: Traffic, devices: Sequence[int]) -> list[Content]:
    """The pieces of a group between which a line may end."""
    named = [str(devices[p]) if p < len(devices) else str(p) for p in group[:MAX_MEMBERS]]
    named += [f"… {len(group) - MAX_MEMBERS:,} more"] if len(group) > MAX_MEMBERS else []
    sign = "→" if traffic.pairs else ","
    pieces = [f"{name}{sign}" for name in named[:-1]] + named[-1:]
    if not traffic.pairs:
        pieces[0], pieces[-1] = "{" + pieces[0], pieces[-1] + "}"
    return [data(piece, traffic.hue(group[0])) for piece in pieces]


def _filled(groups: Sequence[list[Content]], between: str, width: int) -> Iterator[Content]:
    """Lines as full as they get; a group that fits on a line is not broken."""
    line = Content("")
    for pieces in groups:
        whole = sum(piece.cell_length for piece in pieces)
        if line.plain:
            if line.cell_length + len(between) + whole > width:
                yield line
                line = Content("")
            else:
                line += Content(between)
        for piece in pieces:
            if line.plain and line.cell_length + piece.cell_length > width:
                yield line
                line = Content("")
            line += piece
    if line.plain:
        yield line
