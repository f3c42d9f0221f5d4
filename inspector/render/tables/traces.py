"""The tables of a trace: its programs, functions that were compiled more than once, and differences of processes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence

from ...capture.protocol.trace import Place
from ...report import file_and_line
from ...report.traces import Program, RankComparison, Retraced, Trace, ranks_text
from ...units import format_seconds, plural
from ..table import Cell, Column, Detail, Piece, Row, Table, count_cell, size_cell, time_cell

MAX_ROWS = 40


def headline_parts(trace: Trace) -> Sequence[str]:
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
    return list(filter(None, parts))


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


def endings(trace: Trace) -> Iterator[str]:
    """The times that the command and its recording took, and messages."""
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


def programs(trace: Trace) -> Table:
    """Programs, what communicates most in all calls first; helpers in one line."""
    helpers = [program for program in trace.merged if program.is_helper]
    shown = [program for program in trace.merged if not program.is_helper]
    return Table(
        id="programs",
        title="Programs",
        key="p",
        columns=(
            Column("sent in all", 8, 5, align="right"),
            Column("per call", 8, 4, align="right"),
            Column("calls", 4, 5, align="right"),
            Column("program", 10, 6),
            Column("collectives", 12, 4),
            Column("compiled in", 7, 2, align="right"),
            Column("defined", 10, 3),
            Column("called", 10, 1),
        ),
        rows=tuple(_row(program, trace) for program in shown),
        heading="Programs, by bytes sent per device in all calls",
        empty_text="None of the script's own.",
        notes=lambda: _notes(helpers, shown),
        most=MAX_ROWS,
        unit="program",
        details=lambda value: _details(value, trace) if isinstance(value, Program) else (),
    )


def _row(program: Program, trace: Trace) -> Row:
    compiled = program.compiled
    sent = Piece("unknown", "warning") if program.wire_bytes is None else _bytes(program.wire_bytes)
    total = Piece("unknown", "warning") if program.total_wire is None else _bytes(program.total_wire)
    calls = Piece("unknown", "warning") if program.calls is None else count_cell(program.calls)
    cached = Piece(" cached", "aside")
    seconds = Piece("earlier", "aside") if compiled.earlier else time_cell(compiled.compile_seconds)
    return Row(
        (
            total,
            sent,
            calls,
            (Piece(trace.id_of(program), "strong"), Piece(_marks(program, trace), "aside")),
            _collectives(program),
            (seconds, cached) if compiled.cached else seconds,
            "" if compiled.internal else _place(compiled.source),
            _place(compiled.call),
        ),
        program,
        program.is_helper,
    )


def _marks(program: Program, trace: Trace) -> str:
    """Marks of a program: its making, and the ranks that have it where others do not."""
    made = " transformed" if program.compiled.transformed else ""
    is_everywhere = len(program.on) in (0, len(trace.processes))
    ranks = [rank for number in program.on if (rank := trace.processes[number].rank) is not None]
    return made if is_everywhere else f"{made} on {ranks_text(ranks)}"


def _bytes(count: int) -> Piece:
    return size_cell(count) if count else count_cell(0, "aside")


def _collectives(program: Program) -> Cell:
    if program.collectives is None:
        return Piece(f"unknown: {program.reason}", "warning")
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(program.collectives.items()))
    return counted or Piece("none", "aside")


def _place(place: Place | None) -> Cell:
    return "" if place is None else file_and_line(place.file, place.line)


def _notes(helpers: Sequence[Program], shown: Sequence[Program]) -> Iterable[Cell]:
    if helpers:
        seconds = format_seconds(sum(program.compiled.compile_seconds for program in helpers))
        what = plural(len(helpers), "operation")
        yield Piece(f"and {what} outside of jit, without communication, compiled in {seconds}", "aside")
    if any(program.calls is None for program in shown):
        yield Piece("calls are unknown where those of one function's programs could not be distinguished", "aside")


def _details(program: Program, trace: Trace) -> Sequence[Detail]:
    compiled = program.compiled
    arguments = [f"{each.path}: {each.type} {each.spec or ''}".rstrip() for each in compiled.arguments]
    return (Detail("arguments", "\n".join(arguments)), Detail("static", "\n".join(compiled.static)))


def transfers(trace: Trace) -> Table:
    """Arrays that were put to other devices outside of programs, what moves most in all first."""
    moved = [each for process in trace.processes[:1] for each in process.transfers]
    return Table(
        id="transfers",
        title="Transfers",
        columns=(
            Column("received in all", 8, 4, align="right"),
            Column("per device", 8, 3, align="right"),
            Column("times", 4, 5, align="right"),
            Column("type", 10, 6),
            Column("from", 10, 6),
            Column("to", 10, 6),
            Column("at", 10, 1),
        ),
        rows=tuple(
            Row(
                (
                    size_cell(each.received * each.calls),
                    size_cell(each.most),
                    count_cell(each.calls),
                    each.type,
                    each.source,
                    each.target,
                    _place(each.call),
                ),
                each,
            )
            for each in moved
        ),
        heading="Transfers outside of programs, bytes that devices have to receive" if moved else "",
        most=MAX_ROWS,
        unit="transfer",
    )


def retracings(trace: Trace) -> Table:
    """Functions that were compiled more than once, and what differs between their calls."""
    rows = [row for found in trace.retraced for row in _retraced(found, trace)]
    return Table(
        id="retracing",
        title="Retracing",
        columns=(Column("", 10, 5), Column("", 7, 4, align="right"), Column("", 20, 3)),
        rows=tuple(rows),
        heading="Compiled more than once" if rows else "",
        most=MAX_ROWS,
    )


def _retraced(found: Retraced, trace: Trace) -> Iterable[Row]:
    first = found.programs[0]
    yield Row((Piece(trace.id_of(first), "strong"), format_seconds(first.compiled.compile_seconds), ""), first)
    for program, reasons in zip(found.programs[1:], found.reasons, strict=True):
        seconds = format_seconds(program.compiled.compile_seconds)
        yield Row((Piece(trace.id_of(program), "strong"), seconds, "; ".join(reasons)), program)


def outcome(found: RankComparison) -> str:
    """`2 differences between ranks 0–3`, or that none was found; empty where no two ranks were compared."""
    if len(found.ranks) < 2:
        return ""
    count = plural(len(found.divergences), "difference") if found.divergences else "no differences found"
    return f"{count} between {ranks_text(found.ranks)}"


def ranks_summary(trace: Trace) -> Iterator[str]:
    """The compared programs, and those that could not be compared."""
    found = trace.ranks
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
