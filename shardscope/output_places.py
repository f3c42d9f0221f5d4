"""Files that a command is to write, refused before anything is captured: those that cannot be written, or are read."""

from __future__ import annotations

import argparse
import os

from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.output_file import check_writable
from shardscope.inspector.capture.protocol.request import split_function

STANDARD_OUTPUT = "-"

WRITTEN = ("output", "save", "golden")
"""Options that name a file to write; the last one with `--update`."""

READ = ("function", "path", "before", "after", "inputs", "inputs_a", "inputs_b", "context", "golden")
"""Arguments and options that name a file to read, or something in it."""


def check_places(options: argparse.Namespace) -> None:
    """Refuse the files of `-o`, `--save` and `check --update` where writing them fails, or loses what is in them.

    Raises:
        CaptureError: one cannot be written, is what the command reads, or is written twice.
    """
    given = {name: place for name in {*WRITTEN, *READ} if isinstance(place := getattr(options, name, None), str)}
    for name in ("output", "save"):
        if given.get(name, STANDARD_OUTPUT) != STANDARD_OUTPUT:
            check_writable(given[name])
    written = WRITTEN if getattr(options, "update", False) else WRITTEN[:-1]
    read = [given[name] for name in READ if name in given and name not in written]
    known = {_key(each): "the command reads it" for place in read for each in (place, split_function(place)[0])}
    for name in written:
        key = _key(given[name]) if name in given else None
        if key is not None and key in known:
            raise CaptureError(f"cannot write {given[name]}: {known[key]}")
        known[key] = "another option writes it"


def _key(place: str) -> object:
    """The identity of a file, by any of its names; None for a device, a pipe, a folder and standard output."""
    try:
        status = os.stat(place)
    except (OSError, ValueError):
        return None if place == STANDARD_OUTPUT else os.path.realpath(place)
    return (status.st_dev, status.st_ino) if os.path.isfile(place) else None
