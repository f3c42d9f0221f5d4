"""A trace, and a comparison of its processes, as one reads them in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename

from rich.console import Console, RenderableType
from rich.text import Text

from ...capture.model import Capture
from ...ir.program import Program
from ...traces.ranks import Divergence, RankComparison, compare_ranks, ranks_text
from ...traces.trace import Trace
from ..printable import printable
from ..tables.ranks import ranks_summary
from ..tables.traces import endings, headline_parts, programs, retracings, transfers
from .opening import explained
from .tables import data, section, table_section


def print_trace(trace: Trace, console: Console) -> None:
    """Print everything that has something to say."""
    console.print(headline(trace))
    if not trace.processes:
        console.print("  no Python process compiled a program with JAX, or none could be recorded")
        return
    if trace.explanation is not None:
        console.print()
        console.print(explained(trace.explanation, Program(Capture())))
    raised = [process.failure for process in trace.processes if process.failure is not None]
    if raised:
        messages = dict.fromkeys(failure.message for failure in raised)
        hints = dict.fromkeys(f"hint: {failure.hint}" for failure in raised if failure.hint)
        console.print()
        console.print(section("The script raised", [*(data(each, "bold red") for each in messages), *map(data, hints)]))
    found = compare_ranks(trace) if trace.is_distributed else None
    for divergence in found.divergences if found is not None else ():
        console.print()
        console.print(divergence_section(divergence))
    for table in (programs(trace), transfers(trace), retracings(trace)):
        if (shown := table_section(table)) is not None:
            console.print()
            console.print(shown)
    console.print()
    for line in endings(trace):
        console.print(data(line, "dim"))


def headline(trace: Trace) -> Text:
    """The command, what it ran on, and how it ended."""
    command, *others = map(printable, headline_parts(trace))
    return Text.assemble((command, "bold"), *(f"   {part}" for part in others))


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
