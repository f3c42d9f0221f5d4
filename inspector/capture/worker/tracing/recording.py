"""The recording of one process: its files, its programs and their calls. A fork starts its own."""

from __future__ import annotations

import _thread
import fnmatch
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from ...protocol.trace import (
    MAX_PROGRAMS,
    Called,
    CompiledProgram,
    Overhead,
    ProcessEnded,
    ProcessStarted,
    TraceOptions,
    capture_file,
)
from .. import failures
from .calls import Calls
from .files import CaptureFile, ProcessFiles
from .lowering import Lowering

if TYPE_CHECKING:
    from ..simulated.topology import Topology
    from .origins import Settings


def programs() -> ModuleType:
    """Return the modules that need JAX, imported once JAX is."""
    from . import programs

    return programs


def is_internal(function: Any) -> bool:
    """Return whether a function is JAX's own."""
    return failures.is_part_of_jax(getattr(getattr(function, "__code__", None), "co_filename", ""))


class Observer(Protocol):
    """Learns of programs while they are recorded."""

    def compiled(self, program: CompiledProgram, lowering: Lowering, executable: Any) -> None:
        """A program was compiled."""

    def calling(self, number: int) -> None:
        """A program is called, and not through C++."""

    def called(self, number: int, results: Any) -> None:
        """A program was called, and gave these arrays."""


class Recording:
    """The programs that a process compiled and called; `listing` and `capturing` are seconds of recording."""

    def __init__(
        self,
        trace: str,
        options: TraceOptions,
        topology: Topology | None,
        settings: Settings | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._observer = observer
        self.settings = settings
        self.steps = Steps(options.steps)
        self.listing = self.capturing = 0.0
        self._trace = trace
        self._options = options
        self._topology = topology
        self._started = time.time()
        self._names: Counter[str] = Counter()
        self._functions = FunctionNumbers()
        self._modules: dict[int, tuple[Any, int]] = {}
        self._has_backend = False
        self._count = 0
        self.cleared = 0
        self.has_own = False
        """True once a program of the user's was compiled."""
        self._matched: set[int] = set()
        self._shared: set[int] = set()

    @cached_property
    def files(self) -> ProcessFiles:
        """The files of this process, from the first use on."""
        files = ProcessFiles(self._trace)
        version = ".".join(map(str, sys.version_info[:3]))
        rank = self._options.rank if self._options.processes > 1 else None
        files.write(ProcessStarted(os.getpid(), tuple(sys.orig_argv), version, self._started, rank))
        return files

    @cached_property
    def calls(self) -> Calls:
        """The counts of calls."""
        is_told = self._options.match is not None or self._options.compare or self._observer is not None
        return Calls(self.files.calls, self.called if is_told else None)

    @cached_property
    def transfers(self) -> Any:
        """The arrays that are put elsewhere."""
        from .transfers import Transfers  # needs JAX

        return Transfers(self.files.write)

    def is_matched(self, lowering: Lowering) -> bool:
        """Return whether `match` selects this program."""
        return lowering.number in self._matched

    def begin(self, lowering: Lowering, module: Any, hit_cache: Callable[[], None]) -> None:
        """Give a program its number and its id; capture all of it first, if that is wanted.

        What ends the process while it is compiled then leaves the stages before.
        """
        if self._count == MAX_PROGRAMS:
            return
        lowering.number = self._count
        self._count += 1
        written = "" if lowering.wrapped is None else lowering.wrapped.name
        lowering.name = written or str(lowering.arguments.get("fun_name") or programs().module_name(module))
        self._names[lowering.name] += 1
        count = self._names[lowering.name]
        lowering.id = lowering.name if count == 1 else f"{lowering.name}.{count}"
        lowering.cached = False
        if not programs().is_listening:
            programs().listen(hit_cache)
        wanted = self._options.match
        if wanted is None or not any(fnmatch.fnmatchcase(name, wanted) for name in (lowering.id, lowering.name)):
            return
        self._matched.add(lowering.number)
        if self._options.rank == 0 and not self._options.shallow:  # one process is enough: all have the same program
            self._capture(lowering)

    def _capture(self, lowering: Lowering) -> None:
        started = time.perf_counter(), time.thread_time()
        file = CaptureFile(self.files.folder / capture_file(lowering.number or 0))
        programs().capture(lowering, self._options, file, self._topology)
        file.close()
        lowering.captured = "full"
        self.capturing += time.perf_counter() - started[0]
        self.listing -= time.thread_time() - started[1]

    def add(self, lowering: Lowering, computation: Any, executable: Any, failure: str | None = None) -> None:
        """Record a program that is compiled, or could not be."""
        function, number = lowering.caller.get("fun"), lowering.number
        assert number is not None
        if computation is not None and executable is not None:
            self._modules[id(computation._hlo)] = weakref.ref(computation._hlo), number
        self.tell_backend()
        file = self.files.folder / capture_file(number)
        more = {"function": self._functions.of(function), "cleared": self.cleared, "failure": failure}
        described = programs().describe(lowering, computation, executable, file, self._options, self.settings, **more)
        self.has_own = self.has_own or not described.internal
        if described.fingerprint and self._options.compare:
            self._shared.add(number)
        self.files.write(described)
        if self._observer is not None and executable is not None:
            self._observer.compiled(described, lowering, executable)
        self.tell_overhead()
        lowering.arguments = {}
        lowering.caller = {}

    def compiled_before(self, computation: Any) -> int | None:
        """The number of the program that has the same module."""
        module, number = self._modules.get(id(computation._hlo), (None, None))
        return number if module is not None and module() is computation._hlo else None

    def calling(self, replicated: Any) -> None:
        """A program is called, and not through C++; what several processes do may hang in the call."""
        number = self.calls.number(replicated)
        if number in self._shared:
            self.files.write(Called(number, programs().call_on_stack()))
        if number is not None and self._observer is not None:
            self._observer.calling(number)

    def called(self, number: int, results: Any, *, is_told: bool = False) -> None:
        """A program was called: `is_told` where `calling` has said so."""
        if number in self._shared and not is_told:
            self.files.write(Called(number, programs().call_on_stack()))
        if number in self._matched:
            self.steps.add()
        if self._observer is not None:
            self._observer.called(number, results)

    def stop_counting(self) -> None:
        """Count no more calls, whatever JAX still keeps."""
        if "calls" in self.__dict__:
            self.calls.stop()

    def tell_backend(self) -> None:
        """Record the devices, once."""
        if not self._has_backend:
            self._has_backend = True
            self.files.write(programs().backend())

    def tell_overhead(self) -> None:
        """Record what the recording took until now."""
        self.files.write(Overhead(self.listing, self.capturing))

    def end(self) -> None:
        """Record the end of the process, if anything was recorded of it."""
        if "files" in self.__dict__:
            self.tell_overhead()
            if "transfers" in self.__dict__:
                self.transfers.end()
            self.files.write(ProcessEnded(time.time() - self._started, self.steps.stopped))


class FunctionNumbers:
    """Numbers that tell function objects apart, also those of which one is gone when the next is made."""

    def __init__(self) -> None:
        self._count = 0
        self._known: dict[int, tuple[int, Any]] = {}

    def of(self, function: Any) -> int:
        """The number of a function object; a new one for an object that was not seen before, 0 for None."""
        if function is None:
            return 0
        known = self._known.get(id(function))
        if known is not None and known[1]() is function:
            return known[0]
        try:
            reference: Any = weakref.ref(function)
        except TypeError:
            reference = lambda: function  # noqa: E731
        self._count += 1
        self._known[id(function)] = self._count, reference
        return self._count


EXIT_TIMEOUT_S = 20.0
"""Seconds in which a script that was ended by us has to come to its end; threads of its own may never do."""


class Steps:
    """Counts calls up to a limit; None for no limit. `stopped` says why the script was ended, if it was."""

    def __init__(self, limit: int | None) -> None:
        self.stopped = ""
        self._limit = limit
        self._count = 0

    def add(self) -> None:
        """Count a call, and end the script after the last."""
        self._count += 1
        if self._limit is not None and self._count >= self._limit:
            self.stop(f"{self._count} calls were made")

    def stop(self, why: str) -> None:
        """End the script as `sys.exit` would, from whatever thread."""
        if not self.stopped:
            self.stopped = why
            timer = threading.Timer(EXIT_TIMEOUT_S, os._exit, (0,))
            timer.daemon = True
            timer.start()
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()
        raise SystemExit(0)
