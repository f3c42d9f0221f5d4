"""Differences between the processes of a run, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename

from rich.console import RenderableType
from rich.text import Text

from ...traces.ranks import Divergence, ranks_text
from .tables import data, section


def divergence_section(divergence: Divergence) -> RenderableType:
    """A difference, and below it what each group of ranks does."""
    return section(divergence.title, list(_sides(divergence)))


def _sides(divergence: Divergence) -> Iterator[RenderableType]:
    names = [ranks_text(side.ranks) for side in divergence.sides]
    width = max(map(len, names))
    for name, side in zip(names, divergence.sides, strict=True):
        line = Text.assemble((f"{name}:".ljust(width + 2), "bold"), data(side.text))
        if side.place is not None:
            line.append_text(data(f"   {basename(side.place.file)}:{side.place.line}", "cyan"))
        yield line
