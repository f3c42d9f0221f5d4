"""Captures of functions that are only in this process: those of a notebook, of a test.

Propagation, which may crash, still runs in a process of its own.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from .events import decode, events_of, fold
from .model import Capture, has_mesh
from .propagation import propagated
from .protocol.events import Event, Stage, frame_of
from .protocol.trace import TraceOptions
from .protocol.wire import Frame
from .protocol.workspace import DUMP, find_propagation
from .scratch import Scratch

PACKAGE = __name__.partition(".")[0]


def capture_here(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], case: str | None = None) -> Capture:
    """Trace, lower and compile a call here, without running it. What it raises, it raises.

    The files of a validation are written to the folder `case`.
    Line numbers are those of this process; the devices are JAX's own.
    """
    from .worker.in_process import record_call
    from .worker.tracing.files import names_of_cells, with_names_of_cells

    events: list[Event] = []
    with Scratch() as workspace:
        record_call(function, (tuple(args), dict(kwargs)), events.append, str(workspace), own_files(), case)
        capture = reduce(fold, events, Capture())
        texts = [each.text for each in events if isinstance(each, Stage) and each.name == "stablehlo"]
        if texts and has_mesh(texts[-1]):
            files = find_propagation(str(workspace / DUMP))
            capture = propagated(capture, texts[-1], files, sys.executable, os.environ)
    cells = names_of_cells()
    return _renamed(capture, lambda frame: with_names_of_cells(frame, cells)) if cells else capture


def _renamed(capture: Capture, rename: Callable[[Frame], Frame]) -> Capture:
    return reduce(fold, (decode(rename(frame_of(event))) for event in events_of(capture)), Capture())


@contextmanager
def recording(folder: str) -> Iterator[None]:
    """Record what JAX compiles in this process meanwhile into the folder of a trace."""
    from .worker.tracing.start import begin

    os.makedirs(folder, exist_ok=True)
    recorder = begin(folder, TraceOptions())
    try:
        yield
    finally:
        recorder.close()


def record_as_told() -> None:
    """Record what JAX compiles in this process if the environment names a folder for it."""
    from .worker.tracing.start import start

    start()


def own_files() -> set[str]:
    """The files of this package on the way from the user's call to here: their lines are none of the program's."""
    files, frame = set[str](), inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
            files.add(frame.f_code.co_filename)
        frame = frame.f_back
    return files
