"""Hooks into JAX: the private functions through which all programs are lowered, compiled and called.

`pxla.lower_sharding_computation`, `pxla.MeshComputation.compile` and `compiler.compile_or_get_cached` for what is
compiled; `pxla.ExecuteReplicated.__call__` and `pxla.MeshExecutableFastpathData` for calls (JAX 0.7 to 0.12).
`dispatch._device_put_impl` for arrays that are put elsewhere. `jax.clear_caches` is public.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from ..patches import change_after_import


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

    def cleared(self) -> None:
        """JAX's caches were cleared."""

    def begins(self, replicated: Any) -> None:
        """A call that does not go through C++ begins."""

    def executed(self, replicated: Any, results: Any) -> None:
        """A call that did not go through C++."""

    def put(self, value: Any, device: Any) -> None:
        """A value is put to a device, or to those of a sharding, outside of programs."""

    def counting(self, executable: Any, results: Any) -> Any:
        """Return the tree of an executable's results, as it is to be for calls through C++."""


def install(listener: Listener) -> None:
    """Have JAX tell `listener`, from the moment at which it is imported, or from now on."""
    changes: dict[str, Callable[[ModuleType], None]] = {
        "jax._src.interpreters.pxla": functools.partial(_change_programs, listener=listener),
        "jax._src.compiler": functools.partial(_change_compiler, listener=listener),
        "jax._src.dispatch": functools.partial(_change_transfers, listener=listener),
        "jax._src.api": functools.partial(_change_clearing, listener=listener),
        "jax": lambda _: listener.prepare(),
    }
    for name in [name for name in changes if name in sys.modules]:
        changes.pop(name)(sys.modules[name])
    change_after_import(changes)


def _change_programs(module: Any, listener: Listener) -> None:
    _change_lowering(module, listener)
    _change_calls(module, listener)


def _change_lowering(module: Any, listener: Listener) -> None:
    lower = getattr(module, "lower_sharding_computation", None)
    computation = getattr(module, "MeshComputation", None)
    if lower is None or computation is None:
        listener.complain("has no pxla.lower_sharding_computation or MeshComputation")
        return
    signature = inspect.signature(lower)

    @functools.wraps(lower)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        return listener.lower(lower, signature, args, kwargs)

    compile_ = computation.compile

    @functools.wraps(compile_)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        return listener.compile(functools.partial(compile_, self, *args, **kwargs), self)

    module.lower_sharding_computation = lowered
    computation.compile = compiled


def _change_calls(module: Any, listener: Listener) -> None:
    execute = getattr(module, "ExecuteReplicated", None)
    through_cpp = getattr(module, "MeshExecutableFastpathData", None)
    if execute is None or through_cpp is None:
        listener.complain("has no pxla.ExecuteReplicated or MeshExecutableFastpathData")
        return
    call = execute.__call__

    @functools.wraps(call)
    def called(self: Any, *args: Any) -> Any:
        listener.begins(self)
        result = call(self, *args)
        listener.executed(self, result)
        return result

    def counted(executable: Any, results: Any, *args: Any, **kwargs: Any) -> Any:
        return through_cpp(executable, listener.counting(executable, results), *args, **kwargs)

    execute.__call__ = called
    module.MeshExecutableFastpathData = counted


def _change_transfers(module: Any, listener: Listener) -> None:
    put = getattr(module, "_device_put_impl", None)
    if put is None:
        listener.complain("has no dispatch._device_put_impl")
        return

    @functools.wraps(put)
    def transferred(value: Any, **how: Any) -> Any:
        listener.put(value, how.get("device"))
        return put(value, **how)

    module._device_put_impl = transferred


def _change_compiler(module: Any, listener: Listener) -> None:
    truth = getattr(module, "compile_or_get_cached", None)
    if truth is None:
        listener.complain("has no compiler.compile_or_get_cached")
        return

    @functools.wraps(truth)
    def compiled(backend: Any, computation: Any, *args: Any, **kwargs: Any) -> Any:
        return listener.compile_module(functools.partial(truth, backend, computation, *args, **kwargs), computation)

    module.compile_or_get_cached = compiled


def _change_clearing(module: Any, listener: Listener) -> None:
    truth = module.clear_caches

    @functools.wraps(truth)
    def cleared() -> None:
        truth()
        listener.cleared()

    public: Any = sys.modules["jax"]
    for each in (module, public):
        if getattr(each, "clear_caches", None) is truth:
            each.clear_caches = cleared
