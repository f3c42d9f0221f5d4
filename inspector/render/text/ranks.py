"""A comparison of processes as one reads it in a terminal."""

from __future__ import annotations

from rich.console import Console

from ...traces.ranks import RankComparison
from ...traces.trace import Trace
from ..tables.ranks import ranks_summary
from .divergences import divergence_section
from .tables import data
from .trace import headline


def print_ranks(compared: tuple[Trace, RankComparison], console: Console) -> None:
    """Print where the processes differ, or that they do not."""
    trace, found = compared
    console.print(headline(trace))
    console.print()
    for divergence in found.divergences:
        console.print(divergence_section(divergence))
        console.print()
    for line in ranks_summary(trace, found):
        console.print(data(line))
