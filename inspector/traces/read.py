"""A Trace from the folder that the processes wrote; what was cut off when one of them died is left out."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..capture import file
from ..capture.dumps import is_regular
from ..capture.model import CaptureError, Failure, Message
from ..capture.protocol.events import Devices, Event
from ..capture.protocol.trace import (
    CALLS_FILE,
    EVENTS_FILE,
    Backend,
    Called,
    CompiledProgram,
    Inexact,
    Overhead,
    ProcessEnded,
    ProcessStarted,
    ScriptEnded,
    Transferred,
    capture_file,
)
from ..collectives.context import context_of
from ..collectives.stage import collectives_in_context
from ..ir import program as ir
from ..units import known_sum
from .event_file import EventFile
from .trace import Process, Program, Trace


def is_trace(path: Path) -> bool:
    """Return whether a folder is one of a trace."""
    return path.is_dir() and next(_event_files(path), None) is not None


def _event_files(folder: Path) -> Iterator[Path]:
    """The files of events in the folder of a trace, which may be somebody else's."""
    return filter(is_regular, folder.glob(f"*/{EVENTS_FILE}"))


def read_trace(
    folder: Path, command: Sequence[str] = (), status: int | None = None, seconds: float | None = None
) -> Trace:
    """Everything that is in the folder of a trace."""
    found = [(_read_process(path.parent), path.parent) for path in _event_files(folder)]
    found = [(read, path) for read, path in found if read[0] is not None]
    found.sort(key=lambda each: _order(each[0][0]))
    programs = [
        program_of(number, compiled, path, inexact)
        for number, ((_, entries, inexact), path) in enumerate(found)
        for compiled in entries
    ]
    processes = tuple(read[0] for read, _ in found if read[0] is not None)
    command = tuple(command) or (processes[0].started.argv if processes else ())
    return Trace(command, processes, ranked(programs), status, seconds)


def _order(process: Process | None) -> tuple[int, float]:
    assert process is not None
    return process.rank or 0, process.started.started


def ranked(programs: Iterable[Program]) -> tuple[Program, ...]:
    """Programs, what communicates most in all calls first, helpers last."""
    return tuple(sorted(programs, key=_rank))


def _rank(program: Program) -> tuple[bool, float, float]:
    """Unknown calls count as one."""
    total = (program.wire_bytes or 0) * (1 if program.calls is None else program.calls)
    return program.is_helper, -total, -program.compiled.compile_seconds


def _read_process(folder: Path) -> tuple[Process | None, list[CompiledProgram], set[int]]:
    process: Process | None = None
    programs: dict[int, CompiledProgram] = {}
    inexact: set[int] = set()
    called: list[Called] = []
    transfers: dict[int, Transferred] = {}
    for event in _events(folder / EVENTS_FILE):
        match event:
            case ProcessStarted():
                process = Process(event)
            case CompiledProgram():
                programs[event.number] = event
            case Inexact(numbers):
                inexact |= set(numbers)
            case Called():
                called.append(event)
            case Transferred():
                transfers[event.number] = event
        if process is not None:
            process = with_event(process, event)
    if process is not None:
        is_known = not any(program.fingerprint and program.number in inexact for program in programs.values())
        moved = sorted(transfers.values(), key=lambda each: -each.received * each.calls)
        process = replace(process, called=tuple(called), transfers=tuple(moved), is_order_known=is_known)
    return process, list(programs.values()), inexact


def with_event(process: Process, event: Event | None) -> Process:
    """A process with what one of its events adds."""
    match event:
        case Backend():
            return replace(process, backend=event)
        case Overhead(listing, capturing):
            return replace(process, listing=listing, capturing=capturing)
        case ScriptEnded():
            return replace(process, has_ended=True)
        case ProcessEnded(seconds, stopped):
            return replace(process, seconds=seconds, stopped=stopped)
        case Devices(wanted):
            return replace(process, wanted_devices=wanted)
        case Failure():
            return replace(process, failure=event)
        case Message() if event not in process.messages:
            return replace(process, messages=(*process.messages, event))
    return process


def _events(path: Path) -> Iterator[Event | None]:
    yield from EventFile(path).read()


def program_of(process: int, compiled: CompiledProgram, folder: Path, inexact: set[int]) -> Program:
    """A program of a process, with what its compiled text says."""
    is_counted = bool(compiled.captured) or not compiled.internal
    calls = calls_of(folder, compiled.number, inexact) if is_counted else None
    path = folder / capture_file(compiled.number)
    if not compiled.captured:
        # The text of a program that JAX compiled itself is kept where there may be a collective in it.
        known: dict[str, int] | None = {} if compiled.failure is None else None
        return Program(process, compiled, calls, known, 0 if known == {} else None, None, compiled.failure or "")
    try:
        if path.exists() and not is_regular(path):
            raise CaptureError(f"{path.name} is not a regular file")
        program = ir.Program(file.load(path))
        stage = program.stage("hlo")
    except CaptureError as error:
        return Program(process, compiled, calls, None, None, None, str(error))
    if stage is None:
        failure = program.capture.failure
        reason = compiled.failure or (failure.message if failure else "it was not compiled to the end")
        return Program(process, compiled, calls, None, None, path, reason)
    found = collectives_in_context(stage, context_of(program))
    wire_bytes = known_sum(one.step_bytes for one in found)
    reason = "" if wire_bytes is not None else "the executions of a collective are not known"
    return Program(process, compiled, calls, dict(Counter(one.kind for one in found)), wire_bytes, path, reason)


def calls_of(folder: Path, number: int, inexact: set[int]) -> int | None:
    """Return the number of calls of a program, from counters that the process shares in the file; None if unknown."""
    counts = array("Q")
    if number in inexact or not is_regular(folder / CALLS_FILE):
        return None
    try:
        with (folder / CALLS_FILE).open("rb") as stream:
            stream.seek(number * counts.itemsize)
            counts.frombytes(stream.read(counts.itemsize))
    except (OSError, ValueError):
        return None
    return counts[0] if counts else None
