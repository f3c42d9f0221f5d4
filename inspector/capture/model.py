"""What was recorded of one function on one target: the Capture, and the values in it.

Every class here is frozen and holds only what the child process, or a file, said. `events.py` builds them from frames.
Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ...parsers.source import Source
from ...parsers.source_frames import Frame
from .values import Compared, Probe, Probed, Reference, Timing

Dialect = Literal["jaxpr", "mlir", "hlo"]

STAGES: dict[str, Dialect] = {
    "jaxpr": "jaxpr",
    "stablehlo": "mlir",
    "sdy": "mlir",
    "hlo-before": "hlo",
    "hlo-spmd": "hlo",
    "hlo": "hlo",
}
"""The stages that a compile goes through, in order, and the language of each.

`sdy` is after propagation, `hlo-before` goes into the partitioner, `hlo-spmd` comes out of it,
`hlo` is optimized and scheduled.
"""


Phase = Literal["start", "import", "arguments", "trace", "lower", "compile", "propagation", "run", "probe"]

PHASES: dict[Phase, str] = {
    "start": "starting Python",
    "import": "importing the script",
    "arguments": "finding the arguments",
    "trace": "tracing",
    "lower": "lowering to StableHLO",
    "compile": "compiling",
    "propagation": "tracing shardings to their origins",
    "run": "running",
    "probe": "looking at values",
}
"""What a capture goes through, in order, and how to say it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being done, and since when, in seconds from the start of the capturing process."""

    phase: Phase
    since: float


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """One axis of a mesh; `type` as in `jax.sharding.AxisType`."""

    name: str
    size: int
    type: Literal["auto", "explicit", "manual"] = "auto"


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh as the user made it; `device_ids` run over it in row-major order of the axes."""

    axes: tuple[MeshAxis, ...]
    device_ids: tuple[int, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """Where a device is: its chip's place in the torus of its slice, and its core on the chip.

    GPUs of one slice share fast links; `process` is the host, or the part of one, that drives the device.
    """

    id: int
    coords: tuple[int, ...]
    core: int = 0
    slice: int = 0
    process: int = 0


@dataclass(frozen=True, slots=True)
class Subject:
    """What was captured, and where: `function` is its name in the file `script`.

    `device_assignment[p]` is the id of the device that runs partition `p` of the compiled program. `devices` are those
    that are somewhere: none for fake ones. `device_kind` is what JAX calls them.
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


@dataclass(frozen=True, slots=True)
class Stage:
    """The text of the program at one point of its way through the compiler.

    `tags` say which operation of the StableHLO a name in the text belongs to: see `tags.py`.
    """

    name: str
    dialect: Dialect
    source: Source
    seconds: float | None = None
    tags: bytes = b""


@dataclass(frozen=True, slots=True)
class Value:
    """An argument or a result of the captured function.

    `path` is the place in the pytree as one would write it (`params[0]['w1']`, `result[1]`); `type` prints as
    `jax.typeof` prints it, global shape; `spec` is the PartitionSpec asked for, or None where none was.
    """

    path: str
    type: str
    spec: str | None = None
    donated: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes per device, as the compiler accounts for them; None where it does not say."""

    arguments: int | None = None
    outputs: int | None = None
    temporaries: int | None = None
    aliased: int | None = None
    code: int | None = None
    peak: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """Something that the compiler, JAX or the script said; `phase` is what was being done.

    `location` is a place in a source file, the script's or the compiler's, as `file:line`.
    """

    level: Literal["info", "warning", "error"]
    text: str
    phase: Phase
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a capture ended before its last stage.

    `kind`: `usage` (what was asked for cannot be done: no such file, function, arguments, interpreter, too few
    devices), `function` (the user's code or its compilation raised), `died` (the process ended by itself, by a signal
    or a limit). `details` is the traceback with JAX's own frames folded, or the process's last words; `hint` is what
    to do next. `said` is the exception's own text, and `stack` are the user's frames, innermost first.
    """

    kind: Literal["usage", "function", "died"]
    message: str
    phase: Phase
    details: str = ""
    hint: str | None = None
    said: str = ""
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """One output of a live run. The statistics are over finite elements; None for types that have none.

    `spec` is how it came out; `values` are all of them, where they are few. Where runs are to be compared, `digest` is
    the same for the same bits, and `projections` are the norm and the products with two fixed random vectors.
    """

    path: str
    type: str
    spec: str | None
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None
    non_finite: int | None = None
    values: str | None = None
    digest: str | None = None
    projections: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """What a live run gave: `seconds` per run after one warm-up.

    `seeded_inputs` is true where arguments had types but no values, and were given pseudo-random ones.
    """

    outputs: tuple[OutputSummary, ...] = ()
    seconds: tuple[float, ...] = ()
    seeded_inputs: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """All that was recorded; grows by one event at a time, each time a new value.

    `timings` are seconds by phase. `progress` is None when the capture has ended; it is `complete` when it ended
    without failure. `equations` say which operation of the StableHLO comes from which equation of the jaxpr: see
    `worker/equation_numbers.py`. `peak` is XLA's list of what is alive when most memory is taken. `damage` says why the
    rest of a saved capture could not be read.
    """

    subject: Subject | None = None
    stages: tuple[Stage, ...] = ()
    equations: bytes = b""
    arguments: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    memory: Memory | None = None
    peak: Source | None = None
    execution: Execution | None = None
    collective_times: tuple[Timing, ...] = ()
    probes: tuple[Probe, ...] = ()
    probed: Probed | None = None
    compared: tuple[Compared, ...] = ()
    reference: Reference | None = None
    messages: tuple[Message, ...] = ()
    failure: Failure | None = None
    script_text: Source | None = None
    stdout: str = ""
    stderr: str = ""
    progress: Progress | None = None
    complete: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    damage: str | None = None

    def stage(self, name: str) -> Stage | None:
        """The stage of that name, if it was reached."""
        return next((stage for stage in self.stages if stage.name == name), None)
