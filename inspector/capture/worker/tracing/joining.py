"""One of several processes on one machine that stand for those of a cluster.

`jax.distributed.initialize()` joins them, whatever it is given; a script that does not call it joins them when JAX
makes its backend, as on a TPU pod (JAX 0.7 to 0.12).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...protocol import OPTIONS_VARIABLE
from ...protocol.events import Level
from ...protocol.trace import TraceOptions
from ..patches import change_after_import, instead_of

COLLECTIVES = "jax_cpu_collectives_implementation"

ASKED = ("num_processes", "process_id")
"""Settings of a script's own processes that are answered with other values."""


def join(options: TraceOptions, complain: Callable[[str], None], tell: Callable[[str], None]) -> None:
    """Have JAX join the processes; `complain` is called if it cannot be had to, `tell` with what differs."""
    joining = _Joining(options, complain, tell)
    change_after_import(
        {"jax._src.distributed": joining.change_distributed, "jax._src.xla_bridge": joining.change_backends}
    )


def set_clock_ahead(seconds: float) -> None:
    """Set `time.time` ahead: clocks of hosts differ, and those of processes on one machine do not."""
    truth, truth_ns, ahead_ns = time.time, time.time_ns, int(seconds * 1e9)
    time.time = lambda: truth() + seconds
    time.time_ns = lambda: truth_ns() + ahead_ns


def stay_alone(tell: Callable[[Level, str], None]) -> None:
    """Have `jax.distributed.initialize()` do nothing, in a process that has the devices of all of them."""

    def change(module: ModuleType) -> None:
        truth = getattr(getattr(module, "State", None), "initialize", None)
        if truth is None:
            return
        signature = inspect.signature(truth)

        def initialize(state: Any, *args: Any, **kwargs: Any) -> None:
            count = signature.bind(state, *args, **kwargs).arguments.get("num_processes") or 1
            given = f"(num_processes={count})" if count > 1 else ""
            why = "the script runs as one process, which has all devices"
            tell("warning" if given else "info", f"jax.distributed.initialize{given} was left out: {why}")

        module.State.initialize = initialize

    change_after_import({"jax._src.distributed": change})


class _Joining:
    def __init__(self, options: TraceOptions, complain: Callable[[str], None], tell: Callable[[str], None]) -> None:
        self._options = options
        self._complain = complain
        self._tell = tell
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._is_done = False

    def change_distributed(self, module: ModuleType) -> None:
        """Answer `State.initialize`, through which `jax.distributed.initialize` goes."""
        state = getattr(module, "State", None)
        truth = getattr(state, "initialize", None)
        if truth is None or not hasattr(module, "global_state"):
            self._complain("has no distributed.State.initialize: its processes do not know of each other")
            return
        signature = inspect.signature(truth)

        @functools.wraps(truth)
        def initialize(state: Any, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(state, *args, **kwargs).arguments
            known = {"num_processes": self._options.processes, "process_id": self._options.rank}
            for name in ASKED:
                if given.get(name) not in (None, known[name]):
                    self._tell(f"jax.distributed.initialize({name}={given[name]}) was answered with {known[name]}")
            with self._lock:
                if self._is_done:
                    raise RuntimeError("distributed.initialize should only be called once.")
                self._is_done = True
            self._initialize(truth, state, signature)

        state.initialize = initialize  # type: ignore[union-attr]

    def change_backends(self, module: ModuleType) -> None:
        """Join before JAX makes its backends."""
        what = "has no xla_bridge.backends: a script that does not initialize jax.distributed runs alone"

        @instead_of(module, "backends", lambda: self._complain(what))
        def backends(truth: Any) -> Any:
            state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
            if not self._is_done and state is not None and os.getpid() == self._pid:
                with self._lock:
                    if not self._is_done:
                        state.initialize()
            return truth()

    def _initialize(self, truth: Callable[..., Any], state: Any, signature: inspect.Signature) -> None:
        own = dataclasses.replace(self._options, coordinator="", processes=1, rank=0)
        os.environ[OPTIONS_VARIABLE] = own.encode()
        config = sys.modules["jax"].config
        if getattr(config, COLLECTIVES, None) in (None, "none"):
            config.update(COLLECTIVES, "gloo")
        named = {
            "coordinator_address": self._options.coordinator,
            "num_processes": self._options.processes,
            "process_id": self._options.rank,
            "coordinator_bind_address": self._options.coordinator,
            "cluster_detection_method": "deactivate",
        }
        truth(state, **{name: value for name, value in named.items() if name in signature.parameters})
