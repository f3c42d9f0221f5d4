"""Records what JAX lowers, compiles and calls in this process, without changing what the user's script does."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...protocol.events import Devices, Message
from ...protocol.trace import Inexact, ScriptEnded, TraceOptions
from .. import failures
from ..needed_devices import needed
from .lowering import Lowering, caller_of, is_jitted_by_user, plain_name
from .recording import Observer, Recording, is_internal, programs

if TYPE_CHECKING:
    from ..simulated.topology import Topology


@dataclass
class _State(threading.local):
    """The state of a thread: what it compiles, and whether it is busy with our own work."""

    busy: bool = False
    compiling: list[Lowering] = field(default_factory=list)


class Recorder:
    """Records into a folder of `trace`, from the first program on."""

    def __init__(self, trace: str, options: TraceOptions, observer: Observer | None = None) -> None:
        self._trace = trace
        self.options = options
        self.topology: Topology | None = None
        if options.topology:
            from ..simulated.topology import Topology

            self.topology = Topology(**json.loads(options.topology))
        self._state = _State()
        self._is_open = True
        self._attribute = f"_shardscope_{id(self)}"
        self._recording = Recording(trace, options, self.topology, observer=observer)
        self._lock = threading.RLock()
        self._alone: list[Any] = []
        os.register_at_fork(after_in_child=self._begin_anew)
        atexit.register(self._end)
        self._before = sys.excepthook
        sys.excepthook = self._uncaught

    def _begin_anew(self) -> None:
        self._recording.stop_counting()
        self._recording = Recording(self._trace, self.options, self.topology, self._recording.settings)
        self._lock = threading.RLock()  # what held the other one is gone

    def _end(self) -> None:
        self._recording.end()

    @property
    def _is_idle(self) -> bool:
        """True during our own work, and after the end: nothing is recorded then."""
        return self._state.busy or not self._is_open

    def close(self) -> None:
        """Record nothing more."""
        if self._is_open:
            self._is_open = False
            self._recording.stop_counting()
            self._end()
            atexit.unregister(self._end)
            sys.excepthook = self._before

    def prepare(self) -> None:
        """Import what needs JAX, and keep our frames out of the stacks that JAX writes into programs.

        JAX traces anew after both what it has traced before.
        """
        with self._own_work():
            programs().leave_no_frames()
            self._recording.settings = programs().Settings()
            if self.options.compare:
                atexit.register(self._tell_end_of_script)  # after JAX's own, which waits for all processes: before it

    def tell(self, text: str) -> None:
        """Record what differs from a run of the script without us."""
        self._recording.files.write(Message("info", text, "run"))

    def complain(self, what: str) -> None:
        """Say that a private part of JAX has moved."""
        jax = sys.modules.get("jax")
        text = f"JAX {getattr(jax, '__version__', '')} {what}: programs are not recorded in full"
        self._recording.files.write(Message("warning", text, "run"))

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
            caller = caller_of(sys._getframe(2))
            lowering = Lowering(truth, arguments, seconds, caller)
            function = caller.get("fun")
            is_of_pmap = getattr(function, "__module__", "") == "jax._src.pmap"
            if function is not None and (not is_internal(function) or is_of_pmap):
                lowering.wrapped = programs().find_wrapped(sys._getframe(2), caller)
            lowering.is_jitted_by_user = function is not None and is_jitted_by_user(sys._getframe(2), function)
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
                    self._recording.add(lowering, computation, None, f"{type(error).__name__}: {error}")
            raise
        except SystemExit:  # its first call was to end the script
            with self._own_work():
                self._recording.add(lowering, computation, None)
            raise
        finally:
            self._state.compiling.pop()
        with self._own_work():
            if lowering.number is None:
                lowering.number = self._recording.compiled_before(computation)
            elif lowering.number != known:
                self._recording.add(lowering, computation, executable)
            if lowering.number is not None:
                self._recording.calls.add(executable.unsafe_call, lowering.number, is_counted=bool(lowering.captured))
        return executable

    def counting(self, executable: Any, results: Any) -> Any:
        """Return the tree of an executable's results, which counts calls through C++ of programs worth counting."""
        if not self._is_idle:
            with self._own_work():
                return self._recording.calls.counting(executable, results)
        return results

    def compile_module(self, truth: Callable[[], Any], module: Any) -> Any:
        """Compile a module: that of the program that is being compiled, or one of which nothing else is known."""
        if self._is_idle:
            return truth()
        lowering = self._state.compiling[-1] if self._state.compiling else Lowering(None, {}, 0.0, {})
        with self._own_work():
            self._recording.begin(lowering, module, self.hit_cache)
        if self._recording.is_matched(lowering) and not self.options.run:
            self._recording.steps.stop("the program was lowered")
        started = time.perf_counter()
        executable = truth()
        lowering.compile_seconds = time.perf_counter() - started
        if not self._state.compiling:
            with self._own_work():
                self._recording.add(lowering, None, executable)
                self._alone.append(executable)
                self._recording.files.write(Inexact((lowering.number or 0,)))
        return executable

    def cleared(self) -> None:
        """JAX's caches were cleared."""
        self._recording.cleared += 1

    def hit_cache(self) -> None:
        """JAX's persistent cache had the program that is being compiled."""
        if self._state.compiling and not self._state.busy:
            self._state.compiling[-1].cached = True

    def begins(self, replicated: Any) -> None:
        """A program is called, and not through C++; one that was compiled earlier is recorded then."""
        if self._is_idle:
            return
        # Of a program that is alone, the module was compiled before the program was known.
        is_alone = any(each is replicated.xla_executable for each in self._alone)
        if self._recording.calls.number(replicated) is None and not is_alone:
            with self._own_work():
                lowering = Lowering(None, {"fun_name": plain_name(replicated.name)}, 0.0, {}, is_earlier=True)
                self._recording.begin(lowering, None, self.hit_cache)
                self._recording.add(lowering, None, replicated)
                if lowering.number is not None:
                    self._recording.calls.add(replicated, lowering.number, is_counted=True)
            if self._recording.is_matched(lowering) and not self.options.run:
                self._recording.steps.stop("the program was loaded")
        self._recording.calling(replicated)

    def executed(self, replicated: Any, results: Any) -> None:
        """A program was called, and not through C++."""
        if self._is_idle:
            return
        number = None
        with self._own_work():
            number = self._recording.calls.executed(replicated)
        if number is not None:
            self._recording.called(number, results, is_told=True)

    def put(self, value: Any, device: Any) -> None:
        """A value is put to a device, or to those of a sharding, outside of programs."""
        if not self._is_idle and not self._state.compiling:
            with self._own_work():
                self._recording.transfers.put(value, device)

    @contextmanager
    def _own_work(self) -> Iterator[None]:
        """Mark what happens here as no work of the script's; errors are reported and go no further."""
        started = time.thread_time()
        self._state.busy = True
        try:
            with self._lock:
                yield
        except Exception as error:
            text = f"a program is not recorded: {type(error).__name__}: {error}"
            self._recording.files.write(Message("warning", text, "run", failures.line_being_run()))
        finally:
            self._state.busy = False
            self._recording.listing += time.thread_time() - started

    def _tell_end_of_script(self) -> None:
        self._recording.files.write(ScriptEnded(self._recording.steps.stopped))

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        is_repeated = False
        if "jax" in sys.modules:
            with self._own_work():
                failure, wanted = failures.describe(error, "run"), needed(error)
                if wanted is not None:
                    self._recording.tell_backend()
                    is_on_cpu = sys.modules["jax"].default_backend() == "cpu"
                    is_repeated = self.options.may_repeat and is_on_cpu and not self._recording.has_own
                    self._recording.files.write(Devices(wanted))
                    failure = replace(failure, hint=f"--devices {wanted} runs it on so many fake CPU devices")
                self._recording.files.write(failure)
        if not is_repeated:
            self._before(kind, error, trace)
