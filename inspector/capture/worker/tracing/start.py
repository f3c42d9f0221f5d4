"""How recording starts in a process: as the environment says, before the script begins."""

from __future__ import annotations

import os

from ...protocol.trace import FOLDER_VARIABLE, OPTIONS_VARIABLE, TraceOptions
from .hooks import install
from .recorder import Recorder


def start() -> None:
    """Record all that JAX compiles in this process, if the environment names a folder for it."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        begin(folder, TraceOptions.decode(os.environ.get(OPTIONS_VARIABLE) or "{}"))


def begin(folder: str, options: TraceOptions) -> Recorder:
    """Record from now on."""
    recorder = Recorder(os.path.abspath(folder), options)
    if recorder.topology is not None:
        recorder.topology.watch_imports()
    install(recorder)
    return recorder
