"""The folder in which a command is recorded: one that is kept, or one that is removed afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.protocol.trace import EVENTS_FILE
from shardscope.inspector.capture.scratch import Scratch
from shardscope.inspector.capture.tracing import SITE_FOLDER, is_output_file
from shardscope.inspector.traces.read import is_trace


@contextmanager
def folder_of(saved: str | None) -> Iterator[Path]:
    """The folder to record into: of that name, in place of an earlier trace, or one that is removed afterwards.

    An earlier trace stays if the command fails before anything is recorded.

    Raises:
        CaptureError: something else has that name.
    """
    if saved is None:
        with Scratch() as path:
            yield path
        return
    path = Path(saved).absolute()
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        is_new, is_earlier = _taken(path)
        if is_earlier:
            path.rename(aside)
    except OSError as error:
        raise CaptureError(f"cannot write to {saved}: {error.strerror}") from error
    try:
        yield path
    except BaseException:
        if not is_trace(path) and (is_new or is_earlier):
            shutil.rmtree(path, ignore_errors=True)
            if is_earlier:
                aside.rename(path)
        raise
    finally:
        if is_earlier:
            shutil.rmtree(aside, ignore_errors=True)


def _taken(path: Path) -> tuple[bool, bool]:
    """Return whether nothing has that name, and whether a trace has it; an empty folder is neither."""
    if not os.path.lexists(path):
        return True, False
    if not path.is_dir():
        raise CaptureError(f"{path} is no folder: --save takes the name of one")
    entries = list(path.iterdir())
    if entries and not all(map(_is_of_a_trace, entries)):
        raise CaptureError(f"{path} holds other files: --save takes a new folder, or that of an earlier trace")
    return False, bool(entries)


def _is_of_a_trace(path: Path) -> bool:
    return path.name == SITE_FOLDER or is_output_file(path.name) or (path / EVENTS_FILE).is_file()
