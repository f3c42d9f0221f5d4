"""The wire and file format of a capture: a run of frames, each one event with its text.

    <length of the JSON> <length of the text>\\n<JSON object><text>

The child process writes frames to a pipe as it goes; a saved capture is the same frames, compressed. So what was
reached before a crash, or before a file was cut off, can always be read. Only the standard library is used here:
this file also runs in interpreters where shardscope is not installed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

SCHEMA = "shardscope.capture/1"

MAX_HEADER_BYTES = 48
MAX_EVENT_BYTES = 1 << 28
MAX_TEXT_BYTES = 1 << 30
MAX_PIECE_BYTES = 1 << 20

_SURROGATE = re.compile(
    rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]"
)  # never written: text that has one cannot be printed or saved


class Frame(NamedTuple):
    """One event: a JSON object with at least the key `event`, and the text that belongs to it."""

    event: dict[str, Any]
    text: bytes = b""


class FrameError(ValueError):
    """The bytes are not a frame: cut off, too large, or something else altogether."""


def encode(frame: Frame) -> bytes:
    """The bytes of one frame."""
    text = json.dumps(frame.event, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    event = text.encode("utf-8", "replace")
    return b"%d %d\n%b%b" % (len(event), len(frame.text), event, frame.text)


def read(stream: BinaryIO, largest: int = MAX_TEXT_BYTES) -> Iterator[Frame]:
    """The frames of a stream until its end; `largest` is the most bytes that one text may have.

    Raises:
        FrameError: at the first bytes that are not a whole frame.
    """
    while header := stream.readline(MAX_HEADER_BYTES):
        lengths = header.split()
        if not header.endswith(b"\n") or len(lengths) != 2 or not all(n.isdigit() for n in lengths):
            raise FrameError("not a frame's header")
        event_length, text_length = map(int, lengths)
        if event_length > MAX_EVENT_BYTES or text_length > min(largest, MAX_TEXT_BYTES):
            raise FrameError("a frame larger than any that is written")
        event, text = _exactly(stream, event_length), _exactly(stream, text_length)
        try:
            decoded = json.loads(event, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise FrameError("an event that is not JSON") from error
        if _SURROGATE.search(event):
            raise FrameError("an event with half a character")
        if not isinstance(decoded, dict) or not isinstance(decoded.get("event"), str):
            raise FrameError("an event without a name")
        yield Frame(decoded, text)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    """Read `length` bytes in pieces, so that a lying header cannot ask for memory that the stream does not fill."""
    pieces = []
    while length:
        piece = stream.read(min(length, MAX_PIECE_BYTES))
        if not piece:
            raise FrameError("cut off in the middle of a frame")
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
