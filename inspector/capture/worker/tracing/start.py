"""The start of recording in a process: by its environment, when it imports JAX, or from inside."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from ...protocol import FOLDER_VARIABLE, OPTIONS_VARIABLE

if TYPE_CHECKING:
    from ...protocol.trace import TraceOptions
    from .recorder import Recorder


COORDINATED = '"coordinator": "1'
"""In the options of one of several processes, whose clock is set before the script begins."""


@functools.cache
def start() -> None:
    """Record all that JAX compiles in this process, if the environment names a folder and nothing records yet.

    Once, whoever asks for it: a launcher, or JAX for its plugins. What records is imported when JAX is.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    is_started = any(name.endswith(".tracing.start") and name != __name__ for name in sys.modules)
    if not folder or is_started:
        return
    options = os.environ.get(OPTIONS_VARIABLE) or "{}"
    if OPTIONS_VARIABLE not in os.environ:  # nobody else has made it, or has removed it since
        os.makedirs(folder, exist_ok=True)
    if "jax" in sys.modules or COORDINATED in options:
        _begin_as_told(folder, options)
    else:
        sys.meta_path.insert(0, _Starter(folder, options))


class _Starter(importlib.abc.MetaPathFinder):
    """Begins to record before JAX is imported, and finds JAX as it is found then."""

    def __init__(self, folder: str, options: str) -> None:
        self._told: tuple[str, str] | None = (folder, options)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        request = self._told
        if fullname != "jax" or request is None:
            return None
        self._told = None
        try:
            _begin_as_told(*request)
        except Exception as error:
            print(f"shardscope: this process is not recorded: {type(error).__name__}: {error}", file=sys.stderr)
        return importlib.util.find_spec(fullname)  # Python asks none of the finders that have begun to listen by this


def _begin_as_told(folder: str, options: str) -> None:
    from ...protocol.trace import TraceOptions

    begin(folder, TraceOptions.decode(options))


def begin(folder: str, options: TraceOptions) -> Recorder:
    """Record from now on."""
    from .. import backward_lines
    from .hooks import install
    from .recorder import Recorder

    backward_lines.watch_imports()
    recorder = Recorder(os.path.abspath(folder), options)
    if recorder.topology is not None:
        recorder.topology.watch_imports()
    if options.skew * options.rank:
        from .joining import set_clock_ahead

        set_clock_ahead(options.skew * options.rank)
    if options.coordinator:
        from .joining import join

        join(options, recorder.complain, recorder.tell)
    if options.abstract:
        from . import abstract

        abstract.install(recorder.complain, recorder.tell)
    install(recorder)
    return recorder
