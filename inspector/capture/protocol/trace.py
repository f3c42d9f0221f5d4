"""The files that a traced process writes into the folder of a trace, as both sides know them.

    <host>-<pid>/events          frames of the events below, in order
    <host>-<pid>/calls           how often each program was called: 64-bit numbers, by the program's number
    <host>-<pid>/0003.capture    a saved capture of program 3

Each is written as things happen, so that all of it is there whatever ends the process. Times are in seconds.
"""

from __future__ import annotations

from typing import Literal

from ... import records
from ...records import dataclass

EVENTS_FILE = "events"
CALLS_FILE = "calls"

MAX_PROGRAMS = 1 << 16


def capture_file(number: int) -> str:
    """The name of the file with the capture of a program."""
    return f"{number:04}.capture"


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Options of a trace: what is recorded besides the list of programs.

    Arguments:
        match: a pattern of the names or ids of programs that are captured with all of their stages.
        steps: calls of these programs after which the script ends; None for its own end.
        run: whether these programs are executed; otherwise the script ends when the first of them is compiled.
        target: what these programs are compiled for, as `inspector/targets/target.py` reads it.
        topology: in JSON, the fields of the worker's Topology for it; empty for the devices that exist.
        abstract: whether large arrays take no memory: what would make them is not executed.
        processes: how many processes run the script, each with these options and a `rank` of its own, from 0.
        coordinator: the address at which JAX's processes meet; empty for those of the script.
        compare: whether what processes do together is recorded in its order, for a comparison.
        shallow: whether not even the programs that match are captured in full.
        skew: seconds by which the clock of each process is ahead of that of the one before.
        may_repeat: whether the script runs again where it fails for want of devices, which is then not printed.
    """

    match: str | None = None
    steps: int | None = None
    run: bool = True
    target: str = "local"
    topology: str = ""
    abstract: bool = False
    processes: int = 1
    rank: int = 0
    coordinator: str = ""
    compare: bool = False
    shallow: bool = False
    skew: float = 0.0
    may_repeat: bool = False

    encode = records.encode
    decode = classmethod(records.decode)  # type: ignore[var-annotated]


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The first event of a process; `started` is in seconds since the epoch, `rank` is that of one of several."""

    pid: int
    argv: tuple[str, ...]
    python: str
    started: float
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """The devices that JAX has in a process, known from its first program on."""

    jax: str
    jaxlib: str
    platform: str
    device_kind: str
    device_count: int
    process_index: int
    process_count: int
    local_device_count: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A line of source; `line` is 0 where it is not known."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Value:
    """An argument or a result of a program.

    `path` is the place in the pytree as one would write it (`params[0]['w1']`, `result[1]`); `type` prints as
    `jax.typeof` prints it, global shape; `spec` is the requested PartitionSpec, or None where none was requested;
    `actual` is the one that the compiled program has, or None where it has none, or was not asked. `layout` is the
    requested order of dimensions in memory, major to minor, `(1, 0)`. `mesh` and `actual_mesh` are the keys of the
    meshes of the specs, of that of the type where there is no spec; None where they are not known. `weak` types give
    way to those that they meet.
    """

    path: str
    type: str
    spec: str | None = None
    donated: bool = False
    actual: str | None = None
    layout: str | None = None
    mesh: str | None = None
    actual_mesh: str | None = None
    weak: bool = False


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program that JAX compiled.

    `id` tells programs of one name apart, in the order in which they were compiled: `step`, `step.2`. `source` is where
    the function is defined, `call` the user's line that made JAX compile it, `function` tells function objects apart.
    `internal` functions are JAX's own: an operation outside of jit. `static` are the static arguments, `keywords` the
    names of those that the call gave by name. A `transformed` program is what a transformation outside of jit, such as
    `jax.grad`, made of a jitted function. `context` are the axes of the mesh in the context. `cached` says that the
    persistent cache had it. `captured` is how much of it is in its capture file. `failure` is what its compilation
    raised. A program that runs on the devices of several `processes` has a `fingerprint`, which is equal in all of them
    if they run the same. `device_ids` are the numbers of all of its devices, in the order of its partitions.

    What else JAX may trace it anew for, as text: the values that its function has `bound`, options of jit and of JAX,
    the `structure` of its arguments, and the times that JAX's caches were `cleared` before.

    A program that was compiled `earlier` was called, and not compiled while this process was recorded.
    """

    number: int
    id: str
    name: str
    source: Place | None = None
    call: Place | None = None
    function: int = 0
    internal: bool = False
    arguments: tuple[Value, ...] = ()
    static: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    transformed: bool = False
    context: tuple[str, ...] = ()
    devices: int = 1
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    cached: bool = False
    captured: Literal["", "compiled", "full"] = ""
    failure: str | None = None
    processes: int = 1
    fingerprint: str = ""
    device_ids: tuple[int, ...] = ()
    bound: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    structure: str = ""
    cleared: int = 0
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """A program of several processes is called, from the user's line `call`; recorded before that where possible."""

    number: int
    call: Place | None = None


MAX_PAIRS = 4096
"""Pairs of devices that one transfer lists."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """An array was put to other devices outside of programs, at the user's line `call`, so far `calls` times.

    `source` and `target` are shardings as text, `host` for an array that was on no device. Bytes of each time: `most`
    is what a device receives at most, `received` what all receive, `pairs` are sender, receiver and bytes of those
    that are devices. Later events of one `number` take the place of earlier ones.
    """

    number: int
    call: Place | None
    type: str
    source: str
    target: str
    calls: int
    most: int
    received: int
    pairs: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptEnded:
    """The script came to its end, or was `stopped`: it calls nothing more. Its process may still wait for others."""

    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Inexact:
    """The calls of some programs are not known: JAX lowered them where it is not listened to."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Overhead:
    """CPU seconds that the recording has taken: `listing` for the list of programs, `capturing` for captures."""

    listing: float
    capturing: float


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """The process came to its end; `seconds` since it started. `stopped` says why shardscope ended it, if it did."""

    seconds: float
    stopped: str = ""


TraceEvent = (
    ProcessStarted | Backend | CompiledProgram | Called | Transferred | ScriptEnded | Inexact | Overhead | ProcessEnded
)
