"""Programs that a command compiled, and how its processes differ in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ...parsers.record import Record
from ..capture.model import Failure, Message
from ..capture.protocol.trace import (
    Backend,
    Called,
    CompiledProgram,
    Place,
    ProcessStarted,
    Transferred,
)
from ..units import grouped, known_product, ranges_text
from . import Explanation


class Program(Record, frozen=True):
    """A program of a process, `process` by its place in the trace.

    `calls` are None where the calls of one function's programs could not be separated. `collectives` are those of the
    compiled program by kind, as its text has them; None where there is no such text. `wire_bytes` are what a device
    sends in one call, None where that is not known. `reason` says what is not known, and why. `on` are all processes
    that have it, where a list is merged.
    """

    process: int
    compiled: CompiledProgram
    calls: int | None
    collectives: dict[str, int] | None
    wire_bytes: int | None
    path: Path | None
    reason: str = ""
    on: tuple[int, ...] = ()

    @property
    def total_wire(self) -> int | None:
        """Bytes that a device sends in all calls."""
        return known_product(self.wire_bytes, self.calls)

    @property
    def is_helper(self) -> bool:
        """True if it is an operation outside of jit that communicates nothing."""
        return self.compiled.internal and self.collectives == {} and not self.reason


class Process(Record, frozen=True):
    """A process that JAX compiled in. `seconds` are None for one that did not come to its end.

    `listing` and `capturing` are what the recording took of them. `wanted_devices` are those without which it failed.
    `called` are the calls of programs of several processes, in their order, up to the end of the script if it
    `has_ended`; unless the order is known, some are missing.
    """

    started: ProcessStarted
    backend: Backend | None = None
    seconds: float | None = None
    stopped: str = ""
    listing: float = 0.0
    capturing: float = 0.0
    failure: Failure | None = None
    wanted_devices: int | None = None
    messages: tuple[Message, ...] = ()
    called: tuple[Called, ...] = ()
    transfers: tuple[Transferred, ...] = ()
    is_order_known: bool = True
    has_ended: bool = False

    @property
    def rank(self) -> int | None:
        """Its number among the processes of JAX."""
        if self.backend is not None and self.backend.process_count > 1:
            return self.backend.process_index
        return self.started.rank


class Side(Record, frozen=True):
    """The behaviour of some ranks, in words, its line, and the program that it is about, if they have one."""

    ranks: tuple[int, ...]
    text: str
    place: Place | None = None
    program: Program | None = None


class Divergence(Record, frozen=True):
    """A difference between ranks.

    Of the kind `devices` (other devices or another JAX), `program` (a function was lowered to different programs),
    `missing` (only some have a program) or `calls` (programs are called in another order, or another number of times).
    """

    kind: Literal["devices", "program", "missing", "calls"]
    program: str
    title: str
    sides: tuple[Side, ...]


class RankComparison(Record, frozen=True):
    """The ranks that were compared, how many programs all of them have, and where they differ.

    `unknown` says what could not be compared.
    """

    ranks: tuple[int, ...]
    same: int
    divergences: tuple[Divergence, ...]
    unknown: tuple[str, ...]


class Retraced(Record, frozen=True):
    """The programs of one function of a process, in the order in which they were compiled.

    `reasons` are, for each program but the first, its differences from the one before that is nearest to it, as text.
    """

    name: str
    programs: tuple[Program, ...]
    reasons: tuple[tuple[str, ...], ...]

    @property
    def compile_seconds(self) -> float:
        """Seconds of all of its compilations but the first."""
        return sum(program.compiled.compile_seconds for program in self.programs[1:])


class Trace(Record, frozen=True):
    """The record of a command; `status` is its exit status, or a signal's number negated, if known.

    `ended` says why shardscope ended it, if it did. `explanation` tells why its script raised, where that is known.

    `programs` are ranked: what communicates most in all calls comes first, then what took longest to compile.
    `retraced` are the user's functions that were compiled more than once, what cost most first; `ranks` compares its
    processes.
    """

    command: tuple[str, ...]
    processes: tuple[Process, ...]
    programs: tuple[Program, ...]
    status: int | None = None
    seconds: float | None = None
    ended: str = ""
    explanation: Explanation | None = None
    retraced: tuple[Retraced, ...] = ()
    ranks: RankComparison = RankComparison((), 0, (), unknown=())

    @property
    def is_distributed(self) -> bool:
        """True if its processes belong to one distributed run."""
        ranks = [process.rank for process in self.processes]
        return len(ranks) > 1 and None not in ranks and len(set(ranks)) == len(ranks)

    @property
    def merged(self) -> tuple[Program, ...]:
        """The programs, each once that several processes of one run have alike, as the first of them has it."""
        if not self.is_distributed:
            return self.programs
        groups = grouped((_identity(program), program) for program in self.programs)
        return tuple(
            replace(min(group, key=lambda each: each.process), on=tuple(sorted(each.process for each in group)))
            for group in groups.values()
        )

    def id_of(self, program: Program) -> str:
        """The id of a program; with its process in front where there are several, but for the first rank."""
        compiled = program.compiled.id
        is_plain = len(self.processes) == 1 or (self.is_distributed and program.process == 0)
        return compiled if is_plain else f"{program.process}/{compiled}"


def _identity(program: Program) -> object:
    compiled = program.compiled
    if compiled.fingerprint:
        return compiled.fingerprint, compiled.id
    return compiled.id, compiled.source, compiled.call, compiled.arguments, compiled.static


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0–2, 5`."""
    return _named(ranges_text(ranks))


def _named(text: str) -> str:
    return f"rank{'' if text.isdecimal() else 's'} {text}"
