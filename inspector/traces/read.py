"""A Trace from the folder that the processes wrote, and captures of its programs.

What was cut off when a process died is left out.
"""

from __future__ import annotations

import os
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..capture import file
from ..capture.dumps import is_regular
from ..capture.environment import NoJaxError, interpreter_with_jax
from ..capture.events import decode
from ..capture.model import Capture, CaptureError, Failure, Message, has_mesh
from ..capture.propagation import Propagated, is_recorded, propagated, with_propagation
from ..capture.protocol import wire
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
from ..capture.protocol.workspace import drop_propagation, kept_propagation
from ..capture.tags import tagged
from ..collectives.context import context_of
from ..collectives.stage import collectives_in_context
from ..ir import program as ir
from ..report.traces import Process, Program, Trace
from ..units import known_sum
from .ranks import compare_ranks, first_other_call
from .retracing import retraced


def is_trace(path: Path) -> bool:
    """Return whether a folder is one of a trace."""
    return path.is_dir() and next(_event_files(path), None) is not None


def _event_files(folder: Path) -> Iterator[Path]:
    """The files of events in the folder of a trace, which may be somebody else's."""
    return filter(is_regular, folder.glob(f"*/{EVENTS_FILE}"))


def read_trace(
    folder: Path,
    command: Sequence[str] = (),
    status: int | None = None,
    seconds: float | None = None,
    expected: int | None = None,
) -> Trace:
    """Everything that is in the folder of a trace of so many processes."""
    session = Session(folder)
    session.update()
    trace = session.trace(command, status, seconds)
    ranks = compare_ranks(trace, expected) if expected or trace.is_distributed else trace.ranks
    return replace(trace, retraced=retraced(trace), ranks=ranks)


@dataclass
class RecordedProcess:
    """The events of a process, as far as they are written; `offset` is the end of the last one that was read."""

    folder: Path
    offset: int = 0
    process: Process | None = None
    programs: dict[int, CompiledProgram] = field(default_factory=dict)
    described: dict[int, Program] = field(default_factory=dict)
    inexact: set[int] = field(default_factory=set)
    called: list[Called] = field(default_factory=list)
    transfers: dict[int, Transferred] = field(default_factory=dict)

    def update(self) -> bool:
        """Take in the events since the last call, up to one that is cut off or none; returns whether there are any."""
        before = self.offset
        with (self.folder / EVENTS_FILE).open("rb") as stream, suppress(wire.FrameError, CaptureError):
            stream.seek(before)
            for frame in wire.read(stream):
                self.offset = stream.tell()
                self._take(decode(frame))
        return self.offset > before

    def _take(self, event: Event | None) -> None:
        match event:
            case ProcessStarted():
                self.process = Process(event)
            case CompiledProgram(number):
                self.programs[number] = event
                self.described.pop(number, None)
            case Inexact(numbers):
                self.inexact.update(numbers)
            case Called():
                self.called.append(event)
            case Transferred(number):
                self.transfers[number] = event
        if self.process is not None:
            self.process = _with_event(self.process, event)

    def finished(self) -> Process:
        """The process with its calls and transfers."""
        assert self.process is not None
        is_known = not any(program.fingerprint and program.number in self.inexact for program in self.programs.values())
        moved = sorted(self.transfers.values(), key=lambda each: -each.received * each.calls)
        return replace(self.process, called=tuple(self.called), transfers=tuple(moved), is_order_known=is_known)

    def programs_of(self, process: int) -> Iterator[Program]:
        """Its programs; the text of each is read once."""
        for number, compiled in self.programs.items():
            known = self.described.get(number)
            if known is None:
                known = self.described[number] = program_of(process, compiled, self.folder, self.inexact)
            calls = None if known.calls is None else calls_of(self.folder, number, self.inexact)
            yield replace(known, process=process, calls=calls)


class Session:
    """The records of a command's processes in the folder of a trace, while they run and afterwards."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recorded: dict[Path, RecordedProcess] = {}

    def update(self) -> bool:
        """Take in the events since the last call; returns whether there are any."""
        folders = [path.parent for path in sorted(_event_files(self._folder))]
        found = [self._recorded.setdefault(each, RecordedProcess(each)).update() for each in folders]
        return any(found)

    @property
    def processes(self) -> list[RecordedProcess]:
        """The processes that have begun, by their ranks, then in the order in which they did."""
        begun = [(each.process, each) for each in self._recorded.values() if each.process is not None]
        return [each for _, each in sorted(begun, key=lambda pair: (pair[0].rank or 0, pair[0].started.started))]

    def trace(self, command: Sequence[str] = (), status: int | None = None, seconds: float | None = None) -> Trace:
        """The trace as far as it is recorded."""
        recorded = self.processes
        programs = [program for number, each in enumerate(recorded) for program in each.programs_of(number)]
        processes = tuple(each.finished() for each in recorded)
        command = tuple(command) or (processes[0].started.argv if processes else ())
        return Trace(command, processes, ranked(programs), status=status, seconds=seconds)


def ranked(programs: Iterable[Program]) -> tuple[Program, ...]:
    """Programs, what communicates most in all calls first, helpers last; unknown calls count as one."""

    def rank(program: Program) -> tuple[bool, float, float]:
        total = (program.wire_bytes or 0) * (1 if program.calls is None else program.calls)
        return program.is_helper, -total, -program.compiled.compile_seconds

    return tuple(sorted(programs, key=rank))


def _with_event(process: Process, event: Event | None) -> Process:
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
        return Program(process, compiled, calls, collectives=None, wire_bytes=None, path=None, reason=str(error))
    if stage is None:
        failure = program.capture.failure
        reason = compiled.failure or (failure.message if failure else "it was not compiled to the end")
        return Program(process, compiled, calls, collectives=None, wire_bytes=None, path=path, reason=reason)
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


def capture_of(program: Program, python: str | None) -> Capture:
    """Return the capture of a program, with the origins of its shardings; these need an interpreter with JAX."""
    assert program.path is not None
    capture = file.load(program.path)
    lowered = capture.stage("stablehlo")
    if lowered is None or not has_mesh(lowered.source.data) or is_recorded(capture):
        return capture
    text = tagged(lowered.source.data, lowered.tags)
    try:
        interpreter = interpreter_with_jax(python)
    except NoJaxError as error:
        return with_propagation(capture, Propagated(problem=f"the origins of shardings are not known: {error}"))
    return propagated(capture, text, kept_propagation(program.path), interpreter, os.environ)


def keep_propagated(trace: Trace, python: str) -> None:
    """Write the origins into each capture that has all stages, so that it can be opened where there is no JAX."""
    for program in trace.programs:
        if program.path is not None and program.compiled.captured == "full":
            capture = capture_of(program, python)
            if capture.damage is None:
                file.save(capture, program.path)
                drop_propagation(program.path)


GRACE_S = 10.0
"""Seconds that processes have, after they have diverged, to show what else they do."""


class RankWatch:
    """Reads what the processes record as they run. With `at_rest`, those that do something have all the time."""

    def __init__(self, folder: Path, *, at_rest: bool = False) -> None:
        self._session = Session(folder)
        self._at_rest = at_rest
        self._since: float | None = None

    @property
    def _ranks(self) -> list[RecordedProcess]:
        return [each for each in self._session.processes if each.process and each.process.started.rank is not None]

    def why_to_end(self) -> str:
        """Return a reason to end the processes; empty while there is none."""
        if self._session.update() and (self._since is None or self._at_rest):
            self._since = time.monotonic() if self._have_diverged() else None
        if self._since is None or time.monotonic() - self._since < GRACE_S:
            return ""
        return "they run different programs"

    def have_ended(self, processes: int) -> bool:
        """Return whether so many processes have come to the end of their scripts."""
        return [rank.finished().has_ended for rank in self._ranks] == [True] * processes

    def _have_diverged(self) -> bool:
        ranks = dict(enumerate(self._ranks))
        known = {
            number: {each.number: each.fingerprint for each in rank.programs.values()} for number, rank in ranks.items()
        }
        calls = {number: [known[number].get(each.number, "") for each in rank.called] for number, rank in ranks.items()}
        ended = {number: rank.finished().has_ended for number, rank in ranks.items()}
        return first_other_call(calls, ended) is not None
