"""A trace as one reads it in a terminal."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ...traces.ranks import compare_ranks
from ...traces.trace import Trace
from ...units import format_seconds, plural
from ..printable import printable
from ..tables.traces import programs, retracings
from .divergences import divergence_section
from .tables import data, section, table_section


def print_trace(trace: Trace, console: Console) -> None:
    """Print everything that has something to say."""
    console.print(headline(trace))
    if not trace.processes:
        console.print("  no Python process compiled a program with JAX, or none could be recorded")
        return
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
    for line in _ends(trace):
        console.print(data(line, "dim"))


def headline(trace: Trace) -> Text:
    """The command, what it ran on, and how it ended."""
    backends = dict.fromkeys(
        f"{backend.platform} × {backend.device_count}, jax {backend.jax}"
        for process in trace.processes
        if (backend := process.backend) is not None
    )
    parts = [shlex.join((os.path.basename(trace.command[0]), *trace.command[1:])) if trace.command else "trace"]
    if len(trace.processes) > 1:
        parts.append(plural(len(trace.processes), "process").replace("processs", "processes"))
    parts += [*backends, plural(len(trace.merged), "program"), _ending(trace)]
    line = Text(printable("   ".join(filter(None, parts))))
    line.stylize("bold", 0, len(printable(parts[0])))
    return line


def _ending(trace: Trace) -> str:
    stopped = next((process.stopped for process in trace.processes if process.stopped), "")
    if stopped:
        return f"ended by shardscope: {stopped}"
    if trace.status is None:
        return ""
    if trace.status == -2:
        return "interrupted"
    if trace.status < 0:
        return f"killed by signal {-trace.status}"
    return "" if trace.status == 0 else f"exit status {trace.status}"


def _ends(trace: Trace) -> Iterator[str]:
    if trace.ended:
        yield f"Ended by shardscope: {trace.ended}."
    if trace.seconds is not None:
        listing = sum(process.listing for process in trace.processes)
        capturing = sum(process.capturing for process in trace.processes)
        share = f" ({listing / trace.seconds:.1%})" if trace.seconds else ""
        text = f"The command took {format_seconds(trace.seconds)}, {format_seconds(listing)}{share} of it for this list"
        yield f"{text}, {format_seconds(capturing)} for captures." if capturing else f"{text}."
    for message in dict.fromkeys(message for process in trace.processes for message in process.messages):
        yield f"{message.level}: {message.text}"
    if trace.programs:
        yield "The full report of one: --match PROGRAM"
