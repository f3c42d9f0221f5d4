"""The events of a capture, as both processes know them: the worker sends them, and a saved capture holds them.

Sizes are in bytes, times in seconds. An event's `bytes` are the text of its frame, the other fields its JSON object.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from typing import Any, Literal, get_args

from ...records import dataclass
from .trace import Place, TraceEvent, Value
from .values import CollectiveTimes, Differences, Execution, Gradients, Probe, Probed, Reference, Summaries, Validation
from .wire import Frame

Level = Literal["info", "warning", "error"]
Phase = Literal[
    "start",
    "import",
    "script",
    "arguments",
    "trace",
    "lower",
    "compile",
    "propagation",
    "run",
    "probe",
    "evaluate",
    "reference",
]


@dataclass(frozen=True, slots=True)
class Schema:
    """The first event of a file: the version of the format."""

    schema: str


@dataclass(frozen=True, slots=True)
class Hello:
    """The interpreter runs; its version."""

    python: str


@dataclass(frozen=True, slots=True)
class Script:
    """The script's file, and its source."""

    name: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Imported:
    """The user's files that the script consists of: its own, and those that it imports."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """One axis of a mesh; `type` as in `jax.sharding.AxisType`."""

    name: str
    size: int
    type: Literal["auto", "explicit", "manual"] = "auto"


ABSTRACT = " (abstract)"
"""The end of the key of a mesh without devices; the rest is that of such a mesh over devices 0, 1, 2, …."""


def key_of_axes(sizes: Iterable[tuple[str, int]]) -> str:
    """`a=8,b=1`: the key of a mesh with axes of these sizes over devices 0, 1, 2, …."""
    return ",".join(f"{name}={size}" for name, size in sizes)


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh as the user made it; `device_ids` run over it in row-major order of the axes. Values name it by `key`."""

    axes: tuple[MeshAxis, ...]
    device_ids: tuple[int, ...]
    name: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """The position of a device: its chip's place in the torus of its slice, and its core on the chip.

    GPUs of one slice share fast links; `process` is the host, or the part of one, that drives the device.
    """

    id: int
    coords: tuple[int, ...]
    core: int = 0
    slice: int = 0
    process: int = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """The captured function `function` in the file `script`, and its devices. Sent again whenever more is known.

    `device_assignment[p]` is the id of the device that runs partition `p` of the compiled program. `devices` are those
    that are somewhere: none for fake ones. `device_kind` is what JAX calls them.
    `interpreter` is the path of the Python that captured, if it is not shardscope's own. The number of devices is
    `requested` if shardscope did not choose it.
    """

    function: str
    script: str | None
    target: str
    platform: str
    device_count: int
    jax: str | None = None
    jaxlib: str | None = None
    python: str | None = None
    meshes: tuple[Mesh, ...] = ()
    device_assignment: tuple[int, ...] = ()
    device_kind: str | None = None
    devices: tuple[Device, ...] = ()
    interpreter: str | None = None
    requested: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The current phase and when it began, in seconds from the start of the capturing process."""

    phase: Phase
    since: float


@dataclass(frozen=True, slots=True)
class Stage:
    """The text of the program at one point of its way through the compiler, and how long it took to get there."""

    name: str
    seconds: float | None = None
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class Pass:
    """The HLO module after a pass; `changes` where that pass changes communication."""

    pipeline: str
    name: str
    changes: bool
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class Equations:
    """The equation that each operation of the StableHLO comes from: see `worker/equation_numbers.py`."""

    numbers: bytes


UPDATED = "updated "
"""Before the path of a result that an argument holds from then on, as modules of `nnx.jit` do."""


@dataclass(frozen=True, slots=True)
class ClosedOver:
    """The sharded arrays that the function closes over; the path is their number. They are constants of the program."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of the function."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Its results."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes per device, as the compiler accounts for them; None where it does not say. `host` is the host's memory."""

    arguments: int | None = None
    outputs: int | None = None
    temporaries: int | None = None
    aliased: int | None = None
    code: int | None = None
    peak: int | None = None
    host: int | None = None


@dataclass(frozen=True, slots=True)
class Peak:
    """XLA's live ranges, and its list of what is alive when most memory is taken."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """Something that the compiler, JAX or the script said; `phase` is what was being done.

    `location` is a place in a source file, the script's or the compiler's, as `file:line`.
    """

    level: Level
    text: str
    phase: Phase
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """Another number of fake devices is needed; fewer are tried where all that are there cannot share a dimension."""

    wanted: int
    is_tried: bool = False


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A frame of the user's in a traceback, as `parsers/source.py` has it."""

    file: str
    function: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0


WAITS = "Deadlock"
"""The type of the failure of a program whose devices wait for each other forever."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a capture ended before its last stage.

    `kind`: `usage` (what was asked for cannot be done: no such file, function, arguments, interpreter, too few
    devices), `function` (the user's code or its compilation raised), `died` (the process ended by itself, by a signal
    or a limit). `details` is the traceback with the frames of JAX and libraries folded, or the process's last words;
    `hint` is what to do next. `said` is the exception's own text, `type` is its class, and `stack` are the user's
    frames, innermost first. `devices` is the number of fake devices, if it was chosen.
    """

    kind: Literal["usage", "function", "died"]
    message: str
    phase: Phase
    details: str = ""
    hint: str | None = None
    said: str = ""
    stack: tuple[StackFrame, ...] = ()
    since: float = 0.0
    type: str = ""
    devices: int | None = None


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A program of the script that is not captured.

    `call` is the user's line that made JAX compile it, `calls` are those until then; `bytes` are what each
    device sends in one call.
    """

    name: str
    call: Place | None
    calls: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OtherPrograms:
    """The programs of the script beside the one that is captured, the costliest first.

    `chosen` is the name of that one, and how many of its name were compiled before it.
    """

    values: tuple[OtherProgram, ...]
    chosen: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class OtherResult:
    """A result or argument of another program of the script: its path and type, and the spec that it has, if any.

    Results of a program that has arguments, none of them sharded, are `is_aside`: they may be placed afterwards.
    """

    program: str
    path: str
    type: str
    spec: str
    is_argument: bool = False
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class OtherResults:
    """The large results of the first calls of the others.

    And the arguments of earlier programs of the captured function, and of those that compute on one device.
    """

    values: tuple[OtherResult, ...]


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more comes, and all went well."""

    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Stdout:
    """Standard output of the script."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Stderr:
    """Standard error of the script."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds by phase; only in files."""

    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Tried:
    """The findings of a report with what came of trying their fixes, as JSON; only in files."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Requested:
    """The request of a capture, as JSON; only in files."""

    text: bytes


Event = (
    Schema | Hello | Script | Imported | Subject | Progress | Stage | Pass | Equations | Arguments | Outputs
    | ClosedOver | Memory | Peak | Message | Execution | CollectiveTimes | Probe | Probed | Differences | Summaries
    | Reference | Gradients | Validation | Devices | Failure | OtherPrograms | OtherResults | End | Stdout | Stderr
    | Timings | Tried | Requested | TraceEvent
)  # fmt: skip

NAMES = {kind: re.sub(r"\B(?=[A-Z])", "_", kind.__name__).lower() for kind in get_args(Event)} | {Schema: "capture"}
"""The names that frames give to events. One of another name is passed over: a later version may have more."""

EVENTS: dict[str, type[Event]] = {name: kind for kind, name in NAMES.items()}

TEXTS = {kind: name for kind in NAMES for name, type in kind.__annotations__.items() if type == "bytes"}
"""The field of an event that is the text of its frame."""


def frame_of(event: Event) -> Frame:
    """Return the frame of an event, whose JSON object holds nothing but dicts, lists and plain values."""
    kind = type(event)
    text = TEXTS.get(kind, "")
    return Frame({"event": NAMES[kind], **plain_value(event, text)}, getattr(event, text) if text else b"")


INFINITE = sys.float_info.max
"""The number that stands for those that are not finite, which JSON does not have."""


def plain_value(value: Any, left_out: str = "") -> Any:
    """The value as JSON has it: of an object its fields, but for the one that is left out."""
    if isinstance(value, (tuple, list)):
        return [plain_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return INFINITE
    names = getattr(type(value), "__match_args__", None)
    return value if names is None else {name: plain_value(getattr(value, name)) for name in names if name != left_out}
