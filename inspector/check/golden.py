"""A golden: what a function communicates and how it is sharded, in a file that is kept beside the code.

It holds nothing that another version of JAX names or numbers otherwise, in an order of its own, so that a new version
of JAX makes no difference in the file either. It is untrusted input, as any file is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...parsers.sharding_syntax.mesh import AxisRef
from ..capture.model import CaptureError
from ..report.changes import BoundarySharding, Fingerprint, Transfer

MAX_BYTES = 1 << 28
"""Bytes of a golden."""


class Repeated(Struct, frozen=True):
    """A collective, and how often it is there."""

    count: int
    transfer: Transfer


class Golden(Struct, frozen=True):
    """The file."""

    schema: Literal["shardscope.golden/1"]
    title: str
    stage: str
    collectives: list[Repeated]
    shardings: list[BoundarySharding]


def golden_of(found: Fingerprint) -> bytes:
    """The file for an outline, as UTF-8 with a newline at the end."""
    repeated = [Repeated(count, _without_positions(transfer)) for transfer, count in found.transfers]
    golden = Golden("shardscope.golden/1", found.title, found.stage, repeated, list(found.borders))
    document = msgspec.to_builtins(golden)
    for work in _works(document):
        work["axes"] = [str(AxisRef(**axis)) for axis in work["axes"]]
    document["collectives"].sort(key=lambda each: msgspec.json.encode(each["transfer"]))
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _works(document: Any) -> Iterator[dict[str, Any]]:
    """Return the signatures of a golden's collectives with known axes; none if the file is no golden."""
    match document:
        case {"collectives": [*repeated]}:
            for each in repeated:
                match each:
                    case {"transfer": {"work": {"axes": [*_]} as work}}:
                        yield work


def read_golden(path: str) -> Fingerprint:
    """The outline that a file keeps.

    Raises:
        CaptureError: it cannot be read, or is no golden.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES)
            if stream.peek():
                raise CaptureError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        document = msgspec.json.decode(data)
        for work in _works(document):
            axes = (AxisRef.spelled(axis) if isinstance(axis, str) else axis for axis in work["axes"])
            work["axes"] = list(map(msgspec.to_builtins, axes))
        golden = msgspec.convert(document, Golden)
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}; `check --update` writes it") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CaptureError(f"{path} is not a golden: {error}; `check --update` rewrites it") from error
    transfers = tuple((each.transfer, each.count) for each in golden.collectives)
    if any(count < 1 or not transfer.place.frames for transfer, count in transfers):
        raise CaptureError(f"{path} is not a golden: a collective that is nowhere; `check --update` rewrites it")
    here = os.path.relpath(path)
    shown = path if here.startswith("..") else here
    return Fingerprint(f"{golden.title}, {shown}", golden.stage, transfers, borders=tuple(golden.shardings))


def _without_positions(transfer: Transfer) -> Transfer:
    return replace(transfer, name="", span=None, where=": ".join(filter(None, transfer.place.frames[0])))


def comparable(found: Fingerprint) -> Fingerprint:
    """Return the parts of an outline that a golden stores."""
    return replace(found, insides=(), findings=(), sizes={}, costs={}, opcodes={})
