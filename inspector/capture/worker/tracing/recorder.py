"""Records what JAX lowers, compiles and calls in this process, without changing what the user's script does."""

from __future__ import annotations

import atexit
import fnmatch
import inspect
import json
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType, TracebackType
from typing import Any

from ...protocol.events import Devices, Message
from ...protocol.trace import (
    MAX_PROGRAMS,
    Called,
    Inexact,
    Overhead,
    ProcessEnded,
    ProcessStarted,
    ScriptEnded,
    TraceOptions,
    capture_file,
)
from .. import failures
from ..simulated.topology import Topology
from .calls import Calls, callers
from .files import CaptureFile, ProcessFiles
from .functions import FunctionNumbers
from .lowering import Lowering
from .steps import Steps
from .uncaught import uncaught


@dataclass
class _State(threading.local):
    """Of a thread: what it compiles, and whether it is busy with our own work."""

    busy: bool = False
    compiling: list[Lowering] = field(default_factory=list)


def programs() -> ModuleType:
    """What needs JAX, imported when JAX is."""
    from . import programs

    return programs


def _is_internal(function: Any) -> bool:
    return failures.is_internal(getattr(getattr(function, "__code__", None), "co_filename", ""))


class Recorder:
    """Records into a folder of `trace`, from the first program on."""

    def __init__(self, trace: str, options: TraceOptions) -> None:
        self._trace = trace
        self.options = options
        self.topology = Topology(**json.loads(options.topology)) if options.topology else None
        self._state = _State()
        self._is_open = True
        self._is_known_from_start = "jax._src.pjit" not in sys.modules
        self._attribute = f"_shardscope_{id(self)}"
        self._lock = threading.RLock()
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._end)
        self._before = sys.excepthook
        sys.excepthook = self._uncaught

    def _begin(self) -> None:
        self._started = time.time()
        self._files: ProcessFiles | None = None
        self._calls: Calls | None = None
        self._names: Counter[str] = Counter()
        self._functions = FunctionNumbers()
        self._modules: dict[int, tuple[Any, int]] = {}
        self._has_backend = False
        self._count = 0
        self._steps = Steps(self.options.steps)
        self._listing = self._capturing = 0.0
        self._matched: set[int] = set()
        self._shared: set[int] = set()

    @property
    def _is_idle(self) -> bool:
        """Whether what happens is nothing to record: our own work, or after the end."""
        return self._state.busy or not self._is_open

    @property
    def files(self) -> ProcessFiles:
        """The files of this process, from the first use on."""
        if self._files is None:
            self._files = ProcessFiles(self._trace)
            version = ".".join(map(str, sys.version_info[:3]))
            rank = self.options.rank if self.options.processes > 1 else None
            self._files.write(ProcessStarted(os.getpid(), tuple(sys.orig_argv), version, self._started, rank))
        return self._files

    @property
    def calls(self) -> Calls:
        """The counts of calls."""
        if self._calls is None:
            files = self.files
            self._calls = Calls(
                files.calls, lambda numbers: files.write(Inexact(numbers)), _is_internal, self._is_known_from_start
            )
        return self._calls

    def close(self) -> None:
        """Record nothing more."""
        if self._is_open:
            self._is_open = False
            self._end()
            atexit.unregister(self._end)
            sys.excepthook = self._before

    def prepare(self) -> None:
        """Import what needs JAX, and keep our frames out of the stacks that JAX writes into programs.

        JAX traces anew after both what it has traced before.
        """
        with self._own_work():
            programs().leave_no_frames()
            if self.options.compare:
                atexit.register(self._tell_end_of_script)  # after JAX's own, which waits for all processes: before it

    def tell(self, text: str) -> None:
        """Record what differs from a run of the script without us."""
        self.files.write(Message("info", text, "run"))

    def complain(self, what: str) -> None:
        """Say that a private part of JAX has moved."""
        jax = sys.modules.get("jax")
        text = f"JAX {getattr(jax, '__version__', '')} {what}: programs are not recorded in full"
        self.files.write(Message("warning", text, "run"))

    def lower(
        self, truth: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Lower, and keep what it was lowered from until it is compiled."""
        started = time.perf_counter()
        computation = truth(*args, **kwargs)
        seconds = time.perf_counter() - started
        if self._is_idle:
            return computation
        with self._own_work():
            arguments = dict(signature.bind(*args, **kwargs).arguments)
            caller = callers(sys._getframe(2)) or {}
            lowering = Lowering(truth, arguments, seconds, caller)
            if caller.get("fun") is not None and not _is_internal(caller["fun"]):
                lowering.wrapped = programs().find_wrapped(sys._getframe(2), caller)
            setattr(computation, self._attribute, lowering)
        return computation

    def compile(self, truth: Callable[[], Any], computation: Any) -> Any:
        """Compile what was lowered, and record it if that was not done before."""
        lowering: Lowering | None = getattr(computation, self._attribute, None)
        if self._is_idle or lowering is None:
            return truth()
        known = lowering.number
        self._state.compiling.append(lowering)
        try:
            executable = truth()
        except Exception as error:
            with self._own_work():
                if lowering.number not in (None, known):
                    self._add(lowering, computation, None, f"{type(error).__name__}: {error}")
            raise
        except SystemExit:  # its first call was to end the script
            with self._own_work():
                self._add(lowering, computation, None)
            raise
        finally:
            self._state.compiling.pop()
        with self._own_work():
            if lowering.number is None:
                lowering.number = self._compiled_before(computation)
            elif lowering.number != known:
                self._modules[id(computation._hlo)] = weakref.ref(computation._hlo), lowering.number
                self._add(lowering, computation, executable)
            if lowering.number is not None:
                self.calls.add(executable.unsafe_call, lowering.number, bool(lowering.captured))
        return executable

    def compile_module(self, truth: Callable[[], Any], module: Any) -> Any:
        """Compile a module: that of the program that is being compiled, or one of which nothing else is known."""
        if self._is_idle:
            return truth()
        lowering = self._state.compiling[-1] if self._state.compiling else Lowering(None, {}, 0.0, {})
        with self._own_work():
            self._begin_program(lowering, module)
        if lowering.number in self._matched and not self.options.run:
            self._steps.stop("the program was lowered")
        started = time.perf_counter()
        executable = truth()
        lowering.compile_seconds = time.perf_counter() - started
        if not self._state.compiling:
            with self._own_work():
                self._add(lowering, None, executable)
                self.files.write(Inexact((lowering.number or 0,)))
        return executable

    def hit_cache(self) -> None:
        """JAX's persistent cache had the program that is being compiled."""
        if self._state.compiling and not self._state.busy:
            self._state.compiling[-1].cached = True

    def begins(self, replicated: Any) -> None:
        """A program is called, and not through C++; what several processes do may hang in the call."""
        if self._shared and not self._is_idle and (number := self.calls.number(replicated)) in self._shared:
            self.files.write(Called(number, programs().call_on_stack()))

    def executed(self, replicated: Any) -> None:
        """A program was called, and not through C++."""
        if self._is_idle:
            return
        number = None
        with self._own_work():
            number = self.calls.executed(replicated)
        if number in self._matched:
            self._steps.add()

    def ended(self, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> None:
        """A call through C++ ended."""
        if self._is_idle or self._calls is None:
            return
        try:
            number = self._calls.ended(jitted, args, kwargs)
        except Exception as error:
            self._excuse(error)
            return
        if number in self._shared:
            self.files.write(Called(number, programs().call_on_stack()))
        if number in self._matched:
            self._steps.add()

    @contextmanager
    def _own_work(self) -> Iterator[None]:
        """What happens here is no work of the script's; what is raised here is told and goes no further."""
        started = time.thread_time()
        self._state.busy = True
        try:
            with self._lock:
                yield
        except Exception as error:
            self._excuse(error)
        finally:
            self._state.busy = False
            self._listing += time.thread_time() - started

    def _excuse(self, error: Exception) -> None:
        text = f"a program is not recorded: {type(error).__name__}: {error}"
        self.files.write(Message("warning", text, "run", failures.line_being_run()))

    def _compiled_before(self, computation: Any) -> int | None:
        """The number of the program that has the same module."""
        module, number = self._modules.get(id(computation._hlo), (None, None))
        return number if module is not None and module() is computation._hlo else None

    def _begin_program(self, lowering: Lowering, module: Any) -> None:
        """Give a program its number and its id; capture all of it first, if that is wanted.

        What ends the process while it is compiled then leaves the stages before.
        """
        if self._count == MAX_PROGRAMS:
            return
        lowering.number = self._count
        self._count += 1
        lowering.name = str(lowering.arguments.get("fun_name") or programs().module_name(module))
        self._names[lowering.name] += 1
        count = self._names[lowering.name]
        lowering.id = lowering.name if count == 1 else f"{lowering.name}.{count}"
        lowering.cached = False
        if not programs().is_listening:
            programs().listen(self.hit_cache)
        if self._is_wanted(lowering):
            self._matched.add(lowering.number)
            started = time.perf_counter(), time.thread_time()
            if (
                self.options.rank == 0 and not self.options.shallow
            ):  # of the same program in all processes, one is enough
                file = CaptureFile(self.files.folder / capture_file(lowering.number))
                programs().capture(lowering, self.options, file, self.topology)
                file.close()
                lowering.captured = "full"
            self._capturing += time.perf_counter() - started[0]
            self._listing -= time.thread_time() - started[1]

    def _is_wanted(self, lowering: Lowering) -> bool:
        wanted = self.options.match
        return wanted is not None and any(fnmatch.fnmatchcase(name, wanted) for name in (lowering.id, lowering.name))

    def _add(self, lowering: Lowering, computation: Any, executable: Any, failure: str | None = None) -> None:
        """Record a program that is compiled, or could not be."""
        function, number = lowering.caller.get("fun"), lowering.number
        assert number is not None
        self._tell_backend()
        file = self.files.folder / capture_file(number)
        described = programs().describe(lowering, computation, executable, file, self.options)
        if described.fingerprint and self.options.compare:
            self._shared.add(number)
        self.files.write(replace(described, function=self._functions.of(function), failure=failure))
        self.files.write(Overhead(self._listing, self._capturing))
        lowering.arguments = {}
        lowering.caller = {}

    def _tell_end_of_script(self) -> None:
        self.files.write(ScriptEnded(self._steps.stopped))

    def _end(self) -> None:
        if self._files is not None:
            self._files.write(Overhead(self._listing, self._capturing))
            self._files.write(ProcessEnded(time.time() - self._started, self._steps.stopped))

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if "jax" in sys.modules:
            with self._own_work():
                for event in uncaught(error):
                    if isinstance(event, Devices):
                        self._tell_backend()
                    self.files.write(event)
        self._before(kind, error, trace)

    def _tell_backend(self) -> None:
        if not self._has_backend:
            self._has_backend = True
            self.files.write(programs().backend())
