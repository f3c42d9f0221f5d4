"""The request that a saved capture was made by, and a request that makes it again."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ...parsers.record import Record
from .model import Capture, CaptureError
from .protocol.request import Request


class Saved(Record, frozen=True):
    """The fields of a `Request` that say which program it is of; no interpreter, and no other commands."""

    function: str
    program: tuple[str, int] | None
    args: tuple[str, ...]
    inputs: str | None
    mesh: tuple[tuple[str, int], ...]
    context: str | None
    devices: int | None
    target: str
    live: bool
    seed: int
    argv: tuple[str, ...]
    directory: str | None
    overrides: tuple[str, ...]


def saved(capture: Capture, request: Request) -> bytes:
    """Return a request as a capture's file keeps it."""
    known = {name: getattr(request, name) for name in Saved.__struct_fields__}
    here = {"directory": request.directory or os.getcwd(), "program": capture.chosen or request.program}
    return msgspec.json.encode(Saved(**{**known, **here}))


def request_in(capture: Capture, python: str | None) -> Request:
    """Return the request that makes a capture from a file again, in the interpreter `python`.

    Raises:
        CaptureError: there is none, or the script is not as it was captured.
    """
    script = capture.script_text
    if not capture.request or script is None:
        raise CaptureError("this capture cannot be made again: it was not saved by `run`")
    try:
        again = msgspec.json.decode(capture.request, type=Saved)
        text = Path(again.directory or "", script.name).read_bytes()
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise CaptureError("this capture cannot be made again: its request is damaged") from error
    except OSError as error:
        raise CaptureError(f"this capture cannot be made again: {script.name}: {error.strerror}") from error
    if text != script.data:
        raise CaptureError(f"this capture cannot be made again: {script.name} has changed since")
    return Request(**{name: getattr(again, name) for name in Saved.__struct_fields__}, python=python)
