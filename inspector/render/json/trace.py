"""A trace as `shardscope.trace/1`, and a comparison of processes as `shardscope.ranks/1`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from ... import report as values
from ...capture.protocol.trace import Place
from ...report import traces
from .finding import Remedy, Where, remedy_of, where_of
from .references import shaped
from .shaped import encoded, schema_of


class Argument(Struct, frozen=True):
    """An argument: its path in the pytree, type, requested PartitionSpec, and whether its type is weak."""

    path: str
    type: str
    spec: str | None
    weak: bool
    donated: bool


class Program(Struct, frozen=True):
    """A program that JAX compiled. Seconds; bytes are what one device sends in one call; what is not known is null.

    `id` is what `--match` takes. `source` is where the function is defined, `call` the user's line that made JAX
    compile it. `transformed` programs are what a transformation outside of jit made of a jitted function, `helper`
    programs operations outside of jit that communicate nothing. `cached` says that JAX's persistent cache had it. One
    that was compiled `earlier`, and loaded, or before the recording began, is recorded when it is called.
    `captured` is what its capture holds: `full`, the `compiled` program alone, or nothing. `reason` says why something
    is not known.
    """

    id: str
    process: int
    name: str = field(name="function")
    source: Place | None
    call: Place | None
    calls: int | None
    lower_seconds: float
    compile_seconds: float
    cached: bool
    earlier: bool
    collectives: dict[str, int] | None
    wire_bytes: int | None
    arguments: list[Argument]
    static: list[str]
    transformed: bool
    context: list[str]
    devices: int
    is_helper: bool = field(name="helper")
    captured: Literal["", "compiled", "full"]
    reason: str


class Process(Struct, frozen=True):
    """A process of the command. `seconds` are null for one that did not come to its end.

    `listing_seconds` and `capturing_seconds` are what the recording took of them; `stopped` says why shardscope ended
    it, `failure` what its script raised.
    """

    pid: int
    argv: list[str]
    python: str
    jax: str | None
    platform: str | None
    device_count: int | None
    process_index: int | None
    seconds: float | None
    listing: float = field(name="listing_seconds")
    capturing: float = field(name="capturing_seconds")
    stopped: str
    failure: str | None
    messages: list[str]


class Step(Struct, frozen=True):
    """One step of an explanation."""

    what: str
    source: Place | None


class Explanation(Struct, frozen=True):
    """The reason why the script raised, as in a report: `message` in one sentence."""

    message: str
    where: Where
    steps: list[Step]
    remedies: list[Remedy]


class Retraced(Struct, frozen=True):
    """A function that was compiled more than once: its programs, and for each but the first what made JAX do it."""

    function: str
    programs: list[str]
    reasons: list[list[str]]


class Pair(Struct, frozen=True):
    """Bytes that one device has to send to another one."""

    sender: int
    receiver: int
    bytes: int


class Transfer(Struct, frozen=True):
    """An array that the script puts to other devices outside of programs, `calls` times, at its line `call`.

    `source` and `target` are shardings as text, `host` for what was on no device. Bytes are those of one time, by the
    blocks that devices have before and after: `most` is what a device receives at most, `received` what all receive.
    """

    process: int
    call: Place | None
    type: str
    source: str
    target: str
    calls: int
    most: int
    received: int
    pairs: list[Pair]


class Trace(Struct, frozen=True):
    """The document. `status` is the command's exit status, or a signal's number negated.

    `explanation` tells why the script raised, null where it did not, or where that is not known.
    """

    schema: Literal["shardscope.trace/1"]
    command: list[str]
    status: int | None
    seconds: float | None
    processes: list[Process]
    programs: list[Program]
    transfers: list[Transfer]
    retraced: list[Retraced]
    explanation: Explanation | None


def trace_to_json(found: traces.Trace) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    document = Trace(
        "shardscope.trace/1",
        list(found.command),
        found.status,
        found.seconds,
        list(map(_process, found.processes)),
        [shaped(Program, each, each.compiled, id=found.id_of(each)) for each in found.programs],
        [
            shaped(Transfer, each, process=number, pairs=[Pair(*pair) for pair in each.pairs])
            for number, process in enumerate(found.processes)
            for each in process.transfers
        ],
        [_retraced(each, found) for each in found.retraced],
        None if found.explanation is None else _explanation(found.explanation),
    )
    return encoded(document)


def trace_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Trace, "shardscope.trace/1")


def _explanation(found: values.Explanation) -> Explanation:
    places = [step.source.frame for step in found.steps]
    steps = [
        Step(step.what, None if frame is None else Place(frame.file, frame.line))
        for step, frame in zip(found.steps, places, strict=True)
    ]
    return Explanation(found.title, where_of(found), steps, remedies=list(map(remedy_of, found.fixes)))


def _process(process: traces.Process) -> Process:
    return shaped(
        Process,
        process.started,
        process.backend or process,
        process,
        **({} if process.backend else dict.fromkeys(("jax", "platform", "device_count", "process_index"))),
        failure=process.failure.message if process.failure else None,
        messages=[message.text for message in process.messages],
    )


def _retraced(found: traces.Retraced, of: traces.Trace) -> Retraced:
    return Retraced(found.name, [of.id_of(program) for program in found.programs], list(map(list, found.reasons)))


class Side(Struct, frozen=True):
    """The behaviour of some ranks, in words: an operation as StableHLO prints it, arguments, or calls; and the line."""

    ranks: list[int]
    text: str
    place: Place | None


class Divergence(Struct, frozen=True):
    """A difference between ranks.

    `devices` are other devices or another JAX; `program` says that a function was lowered to different programs, at
    the first differing operation; `missing`, that only some ranks compile one; `calls`, that the same programs are
    called in another order, or another number of times.
    """

    kind: Literal["devices", "program", "missing", "calls"]
    program: str
    title: str
    sides: list[Side]


class Ranks(Struct, frozen=True):
    """The document. `status` is the first exit status that is not 0, `ended` why shardscope ended the processes.

    `ranks` are those that were compared, `same` is the number of programs of several processes that all of them have
    alike, `unknown` what could not be compared.
    """

    schema: Literal["shardscope.ranks/1"]
    command: list[str]
    status: int | None
    seconds: float | None
    ended: str
    ranks: list[int]
    same: int
    divergences: list[Divergence]
    unknown: list[str]
    messages: list[str]


def ranks_to_json(run: traces.Trace) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    messages = dict.fromkeys(message.text for process in run.processes for message in process.messages)
    failures = [process.failure.message for process in run.processes if process.failure is not None]
    return encoded(
        shaped(
            Ranks,
            run.ranks,
            schema="shardscope.ranks/1",
            command=run.command,
            status=run.status,
            seconds=run.seconds,
            ended=run.ended,
            messages=[*failures, *messages],
        )
    )


def ranks_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Ranks, "shardscope.ranks/1")
