"""A comparison of processes as one reads it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from ...traces.ranks import RankComparison, ranks_text
from ...traces.trace import Trace
from ...units import format_seconds, plural
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


def ranks_summary(trace: Trace, found: RankComparison) -> Iterator[str]:
    """The compared programs, and those that could not be compared."""
    programs = plural(found.same, "program") if found.same else "No program"
    if found.ranks:
        yield f"{programs} of several processes {'are' if found.same > 1 else 'is'} equal in {ranks_text(found.ranks)}."
    yield from (f"Not known: {each}." for each in found.unknown)
    if trace.ended:
        yield f"Ended by shardscope: {trace.ended}."
    for process in trace.processes:
        if process.failure is not None:
            yield f"{'' if process.rank is None else f'rank {process.rank}: '}{process.failure.message}"
    yield from dict.fromkeys(f"{each.level}: {each.text}" for process in trace.processes for each in process.messages)
    if trace.seconds is not None:
        yield f"The processes took {format_seconds(trace.seconds)}."
