"""Saved captures: the frames of a capture, compressed. They are untrusted input, and opened without jax."""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import replace
from io import SEEK_END
from pathlib import Path
from typing import IO, BinaryIO

from .events import decode, events_of, fold
from .model import Capture, CaptureError
from .output_file import written
from .packed import max_unpacked
from .protocol import wire
from .protocol.events import frame_of
from .protocol.wire import FrameError

MAX_BYTES = 1 << 31
"""Bytes of texts that are read from one file, so that a small file cannot unpack into all of the memory."""

MAX_EVENTS = 200_000
"""Events in one file; captures have hundreds, and as many as there are probes and messages."""

GZIP = b"\x1f\x8b"
_START = re.compile(rb'\d++ \d++\n\{"event":"capture"')


def save(capture: Capture, path: Path | str) -> None:
    """Write a capture to a file. The file appears, or is replaced, only when it is complete.

    Raises:
        OutputError: it cannot be written.
    """
    with written(path) as file:
        write(capture, file)


def write(capture: Capture, file: IO[bytes]) -> None:
    """Write a capture as a file has it."""
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        for event in events_of(capture):
            packed.write(wire.encode(frame_of(event)))


def load(path: Path | str, largest: int = MAX_BYTES) -> Capture:
    """Read a capture from a file. Of one that is cut off or damaged, all that comes before is given, with `damage`.

    Raises:
        CaptureError: the file cannot be read, or is not a capture at all.
    """
    try:
        with open(path, "rb") as stream:
            return read(str(path), stream, largest)
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error


def is_capture(data: bytes) -> bool:
    """Return whether compressed data begins as a capture does, as far as it can be unpacked."""
    if not data.startswith(GZIP):
        return False
    try:
        start = zlib.decompressobj(wbits=31).decompress(data[:4096], 2 * wire.MAX_HEADER_BYTES)
    except zlib.error:
        return False
    return not start or _START.match(start) is not None


def read(name: str, stream: BinaryIO, largest: int = MAX_BYTES) -> Capture:
    """Read a capture from the bytes of a file, as `load` does."""
    capture = Capture(foreign=True)
    count = 0
    largest = min(largest, max_unpacked(stream.seek(0, SEEK_END)))
    stream.seek(0)
    try:
        with gzip.open(stream, "rb") as unpacked:
            for frame in wire.read(unpacked, largest):  # type: ignore[arg-type]
                if count == 0 and frame.event["event"] != "capture":
                    raise CaptureError("it has no capture header")
                if unpacked.tell() > largest or count > MAX_EVENTS:
                    raise CaptureError(f"it holds more than {largest} bytes, or {MAX_EVENTS} events")
                capture = fold(capture, decode(frame))
                count += 1
    except (CaptureError, FrameError, EOFError, zlib.error, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if count == 0:
            raise CaptureError(f"cannot read {name}: {reason}") from error
        return replace(capture, damage=reason, complete=False)
    if count == 0:
        raise CaptureError(f"cannot read {name}: it is empty")
    return capture
