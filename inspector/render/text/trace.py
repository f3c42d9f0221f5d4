"""A trace as one reads it in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ...capture.model import Capture
from ...ir.program import Program
from ...traces.ranks import compare_ranks
from ...traces.trace import Trace
from ..printable import printable
from ..tables.traces import endings, headline_parts, programs, retracings
from .divergences import divergence_section
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
    for table in (programs(trace), retracings(trace)):
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
