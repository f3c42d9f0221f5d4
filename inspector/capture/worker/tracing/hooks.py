"""Where JAX is listened to: the private functions through which all programs are lowered, compiled and called.

`pxla.lower_sharding_computation`, `pxla.MeshComputation.compile` and `compiler.compile_or_get_cached` for what is
compiled; `pxla.ExecuteReplicated.__call__` and the hook of `jax._src.api` for calls (JAX 0.7 to 0.12).
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from ..patches import change_after_import

CallHook = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]
"""What JAX calls after each call through C++: with the jitted function, its arguments and the result."""


class Listener(Protocol):
    """Does what JAX would do, by calling `truth`, and is told of what JAX has done."""

    def prepare(self) -> None:
        """JAX is imported, and has traced nothing."""

    def complain(self, what: str) -> None:
        """Something that JAX no longer has."""

    def lower(
        self, truth: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Lower a program."""

    def compile(self, truth: Callable[[], Any], computation: Any) -> Any:
        """Compile what was lowered, or take what was compiled before."""

    def compile_module(self, truth: Callable[[], Any], module: Any) -> Any:
        """Compile a module."""

    def begins(self, replicated: Any) -> None:
        """A call that does not go through C++ begins."""

    def executed(self, replicated: Any) -> None:
        """A call that did not go through C++."""

    def take_call_hook(self, set_hook: Callable[[CallHook | None], None]) -> None:
        """How to listen to calls that go through C++, or not to."""


def install(listener: Listener) -> None:
    """Have JAX tell `listener`, from the moment at which it is imported, or from now on."""
    changes: dict[str, Callable[[ModuleType], None]] = {
        "jax._src.interpreters.pxla": functools.partial(_change_lowering, listener=listener),
        "jax._src.compiler": functools.partial(_change_compiler, listener=listener),
        "jax._src.api": functools.partial(_change_hook, listener=listener),
        "jax": lambda _: listener.prepare(),
    }
    for name in [name for name in changes if name in sys.modules]:
        changes.pop(name)(sys.modules[name])
    change_after_import(changes)


def _change_lowering(module: Any, listener: Listener) -> None:
    lower = getattr(module, "lower_sharding_computation", None)
    computation = getattr(module, "MeshComputation", None)
    execute = getattr(module, "ExecuteReplicated", None)
    if lower is None or computation is None or execute is None:
        listener.complain("has no pxla.lower_sharding_computation, MeshComputation or ExecuteReplicated")
        return
    signature = inspect.signature(lower)

    @functools.wraps(lower)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        return listener.lower(lower, signature, args, kwargs)

    compile_ = computation.compile

    @functools.wraps(compile_)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        return listener.compile(functools.partial(compile_, self, *args, **kwargs), self)

    call = execute.__call__

    @functools.wraps(call)
    def called(self: Any, *args: Any) -> Any:
        listener.begins(self)
        result = call(self, *args)
        listener.executed(self)
        return result

    module.lower_sharding_computation = lowered
    computation.compile = compiled
    execute.__call__ = called


def _change_compiler(module: Any, listener: Listener) -> None:
    truth = getattr(module, "compile_or_get_cached", None)
    if truth is None:
        listener.complain("has no compiler.compile_or_get_cached")
        return

    @functools.wraps(truth)
    def compiled(backend: Any, computation: Any, *args: Any, **kwargs: Any) -> Any:
        return listener.compile_module(functools.partial(truth, backend, computation, *args, **kwargs), computation)

    module.compile_or_get_cached = compiled


class _Hooks:
    """Stands for the state that holds the hook, whose other user is the check for NaNs: has both of them called.

    JAX takes its own hook out of a thread whenever it differentiates: `unset` lets that thread have the one of all.
    """

    def __init__(self, state: Any, unset: Any) -> None:
        self._state = state
        self._unset = unset
        self._ours: CallHook | None = None
        self._theirs: CallHook | None = None
        self._here = threading.local()

    def set_ours(self, hook: CallHook | None) -> None:
        """Have a hook of ours called in all threads."""
        self._ours = hook
        self.set_global(self._theirs)

    def set_global(self, hook: CallHook | None) -> None:
        self._theirs = hook
        self._state.set_global(self._ours if hook is None else self._both(hook))

    def set_local(self, hook: CallHook | None) -> None:
        self._here.theirs = hook
        if hook is None:
            self._state.swap_local(self._unset)
        else:
            self._state.set_local(self._both(hook))

    def _both(self, hook: CallHook) -> CallHook:
        def both(*args: Any) -> None:
            if self._ours is not None:
                self._ours(*args)
            if getattr(self._here, "theirs", hook) is not None:
                hook(*args)

        return both

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


def _change_hook(module: Any, listener: Listener) -> None:
    state = getattr(module, "_post_hook_state", None)
    if state is not None:
        if not hasattr(state, "swap_local") or not hasattr(module.config_ext, "unset"):
            listener.complain("has another hook after calls: they are not counted")
            return
        module._post_hook_state = hooks = _Hooks(state, module.config_ext.unset)
        listener.take_call_hook(hooks.set_ours)
        return
    try:  # before JAX 0.8
        state = module.jax_jit.global_state()
        state.post_hook = None
    except AttributeError:
        listener.complain("has no hook after calls: they are not counted")
    else:
        listener.take_call_hook(lambda hook: setattr(state, "post_hook", hook))
