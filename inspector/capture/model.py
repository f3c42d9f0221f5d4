"""The Capture: what was recorded of one function on one target, by the worker or in a file.

`events.py` builds it from events, and it holds many of them as they are. Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...parsers.errors import ShardscopeError
from ...parsers.record import Record
from ...parsers.source import Source
from .protocol.events import ABSTRACT as ABSTRACT
from .protocol.events import UPDATED as UPDATED
from .protocol.events import WAITS as WAITS
from .protocol.events import Device as Device
from .protocol.events import Failure as Failure
from .protocol.events import Memory as Memory
from .protocol.events import Mesh as Mesh
from .protocol.events import MeshAxis as MeshAxis
from .protocol.events import Message as Message
from .protocol.events import OtherProgram as OtherProgram
from .protocol.events import OtherResult as OtherResult
from .protocol.events import Phase as Phase
from .protocol.events import Progress as Progress
from .protocol.events import Subject as Subject
from .protocol.events import key_of_axes as key_of_axes
from .protocol.stages import STAGES as STAGES
from .protocol.stages import Dialect as Dialect
from .protocol.trace import Value as Value
from .protocol.values import Compared, Gradients, Probe, Probed, Reference, Summary, Timing
from .protocol.values import Execution as Execution
from .protocol.values import OutputSummary as OutputSummary
from .protocol.values import Validation as Validation

PHASES: dict[Phase, str] = {
    "start": "starting Python",
    "import": "importing the script",
    "script": "running the script",
    "arguments": "finding the arguments",
    "trace": "tracing",
    "lower": "lowering to StableHLO",
    "compile": "compiling",
    "propagation": "tracing shardings to their origins",
    "run": "running",
    "probe": "recording per-device values",
    "evaluate": "evaluating the compiled program",
    "reference": "running on one device",
}
"""The phases of a capture, in order, each with the words for it."""


def devices_text(subject: Subject) -> str:
    """`cpu × 8`; `cpu × 4 of 8` where the compiled program runs on some of the devices."""
    used = len(subject.device_assignment)
    return f"{subject.target} × {f'{used} of ' if 0 < used < subject.device_count else ''}{subject.device_count}"


def has_mesh(stablehlo: bytes) -> bool:
    """Return whether there is anything to propagate: a program without a mesh has no shardings."""
    return b"sdy.mesh" in stablehlo


class CaptureError(ShardscopeError):
    """An event, or a capture's file, that is not what it should be."""


class UnreadableFileError(CaptureError):
    """A file that is there, and from which no module can be had."""


class Stage(Record, frozen=True):
    """The text of the program at one point of its way through the compiler.

    `tags` say which operation of the StableHLO a name in the text belongs to: see `tags.py`.
    """

    name: str
    dialect: Dialect
    source: Source
    seconds: float | None = None
    tags: bytes = b""


class PassSnapshot(Record, frozen=True):
    """The HLO module after a pass of the compiler's: one that `changes` communication, or that which ran before it."""

    pipeline: str
    name: str
    stage: Stage
    changes: bool


@dataclass(frozen=True, slots=True)
class Capture:
    """All that was recorded; grows by one event at a time, each time a new value.

    `timings` are seconds by phase. `progress` is None when the capture has ended; it is `complete` when it ended
    without failure. `passes` are around those that change communication, in order. `equations`
    say which operation of the StableHLO comes from which equation of the jaxpr: see `worker/equation_numbers.py`.
    `others` are the script's programs beside this one, which is the `chosen` one, `other_results` what they made,
    `files` those of the user's that it consists of.
    `summaries` are compared with those of a run on one device, and then left out. `peak` are XLA's live ranges, and
    what is alive when most memory is taken. `tried` are findings with what came of their fixes, as `findings/kept.py`
    writes and reads them, and `request` is how a saved one was made, as `again.py` does. `damage` says why the rest of
    a saved capture could not be read. A capture is `foreign` if it was read from a file, which anyone may have written:
    what it names on this machine is theirs to name, and not to see.
    """

    subject: Subject | None = None
    stages: tuple[Stage, ...] = ()
    passes: tuple[PassSnapshot, ...] = ()
    equations: bytes = b""
    arguments: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    closed_over: tuple[Value, ...] = ()
    memory: Memory | None = None
    peak: Source | None = None
    execution: Execution | None = None
    collective_times: tuple[Timing, ...] = ()
    probes: tuple[Probe, ...] = ()
    probed: Probed | None = None
    compared: tuple[Compared, ...] = ()
    summaries: tuple[Summary, ...] = ()
    reference: Reference | None = None
    gradients: Gradients | None = None
    validation: Validation | None = None
    messages: tuple[Message, ...] = ()
    failure: Failure | None = None
    others: tuple[OtherProgram, ...] = ()
    chosen: tuple[str, int] | None = None
    other_results: tuple[OtherResult, ...] = ()
    files: tuple[str, ...] = ()
    script_text: Source | None = None
    stdout: str = ""
    stderr: str = ""
    progress: Progress | None = None
    complete: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    tried: bytes = b""
    request: bytes = b""
    damage: str | None = None
    foreign: bool = field(default=False, compare=False)

    @property
    def function_name(self) -> str:
        """The last part of the captured function's name; empty where that is not known."""
        return "" if self.subject is None else self.subject.function.rpartition(".")[-1]

    @property
    def earlier_arguments(self) -> tuple[OtherResult, ...]:
        """The arguments that earlier programs of the function have received."""
        return tuple(each for each in self.other_results if each.is_argument and each.program == self.function_name)

    def stage(self, name: str) -> Stage | None:
        """The stage of that name, if it was reached."""
        return next((stage for stage in self.stages if stage.name == name), None)
