"""A comparison of processes as `shardscope.ranks/1`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ...capture.protocol.trace import Place
from ...traces import ranks, trace
from .shaped import encoded, schema_of, shaped


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


def ranks_to_json(compared: tuple[trace.Trace, ranks.RankComparison]) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    run, found = compared
    messages = dict.fromkeys(message.text for process in run.processes for message in process.messages)
    failures = [process.failure.message for process in run.processes if process.failure is not None]
    return encoded(
        shaped(
            Ranks,
            found,
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
