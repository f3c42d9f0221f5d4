"""How recording starts in a process: as the environment says, before the script begins, or from inside of it."""

from __future__ import annotations

import functools
import os
import sys

from ...protocol.trace import FOLDER_VARIABLE, OPTIONS_VARIABLE, TraceOptions
from . import abstract
from .hooks import install
from .joining import join, set_clock_ahead
from .recorder import Recorder


@functools.cache
def start() -> None:
    """Record all that JAX compiles in this process, if the environment names a folder and nothing records yet.

    Once, whoever asks for it: a launcher, or JAX for its plugins.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    is_started = any(name.endswith(".tracing.start") and name != __name__ for name in sys.modules)
    if folder and not is_started:
        begin(folder, TraceOptions.decode(os.environ.get(OPTIONS_VARIABLE) or "{}"))


def begin(folder: str, options: TraceOptions) -> Recorder:
    """Record from now on."""
    recorder = Recorder(os.path.abspath(folder), options)
    if recorder.topology is not None:
        recorder.topology.watch_imports()
    if options.skew * options.rank:
        set_clock_ahead(options.skew * options.rank)
    if options.coordinator:
        join(options, recorder.complain, recorder.tell)
    if options.abstract:
        abstract.install(recorder.complain, recorder.tell)
    install(recorder)
    return recorder
