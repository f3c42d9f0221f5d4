"""A trace: every program that JAX compiled while a command ran, in all of its processes. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..capture.model import Failure, Message
from ..capture.protocol.trace import Backend, CompiledProgram, ProcessStarted


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a process, `process` by its place in the trace.

    `calls` are None where the calls of one function's programs could not be told apart. `collectives` are those of the
    compiled program by kind, as its text has them; None where there is no such text. `wire_bytes` are what a device
    sends in one call, None where that is not known. `reason` says what is not known, and why.
    """

    process: int
    compiled: CompiledProgram
    calls: int | None
    collectives: dict[str, int] | None
    wire_bytes: int | None
    path: Path | None
    reason: str = ""

    @property
    def total_wire(self) -> int | None:
        """What a device sends in all calls."""
        return None if self.wire_bytes is None or self.calls is None else self.wire_bytes * self.calls

    @property
    def is_helper(self) -> bool:
        """Whether it is an operation outside of jit that communicates nothing."""
        return self.compiled.internal and self.collectives == {} and not self.reason


@dataclass(frozen=True, slots=True)
class Process:
    """A process that JAX compiled in. `seconds` are None for one that did not come to its end.

    `listing` and `capturing` are what the recording took of them. `wanted_devices` are those without which it failed.
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


@dataclass(frozen=True, slots=True)
class Trace:
    """What was recorded of a command; `status` is its exit status, or a signal's number negated, where it is known.

    `programs` are ranked: what communicates most in all calls comes first, then what took longest to compile.
    """

    command: tuple[str, ...]
    processes: tuple[Process, ...]
    programs: tuple[Program, ...]
    status: int | None = None
    seconds: float | None = None

    def id_of(self, program: Program) -> str:
        """The id of a program: with its process in front, where there are several."""
        compiled = program.compiled.id
        return compiled if len(self.processes) == 1 else f"{program.process}/{compiled}"
