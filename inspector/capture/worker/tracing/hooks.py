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
from typing import TYPE_CHECKING, Any

from ..patches import change_after_import, instead_of

if TYPE_CHECKING:
    from .recorder import Recorder


def install(recorder: Recorder) -> None:
    """Have JAX tell `recorder`, from the moment at which it is imported, or from now on."""
    changes: dict[str, Callable[[ModuleType], None]] = {
        "jax._src.interpreters.pxla": functools.partial(_change_programs, recorder=recorder),
        "jax._src.compiler": functools.partial(_change_compiler, recorder=recorder),
        "jax._src.dispatch": functools.partial(_change_transfers, recorder=recorder),
        "jax._src.api": functools.partial(_change_clearing, recorder=recorder),
        "jax": lambda _: recorder.prepare(),
    }
    for name in [name for name in changes if name in sys.modules]:
        changes.pop(name)(sys.modules[name])
    change_after_import(changes)


def _change_programs(module: Any, recorder: Recorder) -> None:
    _change_lowering(module, recorder)
    _change_calls(module, recorder)


def _change_lowering(module: Any, recorder: Recorder) -> None:
    lower = getattr(module, "lower_sharding_computation", None)
    computation = getattr(module, "MeshComputation", None)
    if lower is None or computation is None:
        recorder.complain("has no pxla.lower_sharding_computation or MeshComputation")
        return
    signature = inspect.signature(lower)

    @functools.wraps(lower)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        return recorder.lower(lower, signature, args, kwargs)

    compile_ = computation.compile

    @functools.wraps(compile_)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        return recorder.compile(functools.partial(compile_, self, *args, **kwargs), self)

    module.lower_sharding_computation = lowered
    computation.compile = compiled


def _change_calls(module: Any, recorder: Recorder) -> None:
    execute = getattr(module, "ExecuteReplicated", None)
    through_cpp = getattr(module, "MeshExecutableFastpathData", None)
    if execute is None or through_cpp is None:
        recorder.complain("has no pxla.ExecuteReplicated or MeshExecutableFastpathData")
        return
    call = execute.__call__

    @functools.wraps(call)
    def called(self: Any, *args: Any) -> Any:
        recorder.begins(self)
        result = call(self, *args)
        recorder.executed(self, result)
        return result

    def counted(executable: Any, results: Any, *args: Any, **kwargs: Any) -> Any:
        return through_cpp(executable, recorder.counting(executable, results), *args, **kwargs)

    execute.__call__ = called
    module.MeshExecutableFastpathData = counted


def _change_transfers(module: Any, recorder: Recorder) -> None:
    @instead_of(module, "_device_put_impl", lambda: recorder.complain("has no dispatch._device_put_impl"))
    def transferred(put: Any, value: Any, **how: Any) -> Any:
        recorder.put(value, how.get("device"))
        return put(value, **how)


def _change_compiler(module: Any, recorder: Recorder) -> None:
    @instead_of(module, "compile_or_get_cached", lambda: recorder.complain("has no compiler.compile_or_get_cached"))
    def compiled(truth: Any, backend: Any, computation: Any, *args: Any, **kwargs: Any) -> Any:
        return recorder.compile_module(functools.partial(truth, backend, computation, *args, **kwargs), computation)


def _change_clearing(module: Any, recorder: Recorder) -> None:
    truth = module.clear_caches

    @functools.wraps(truth)
    def cleared() -> None:
        truth()
        recorder.cleared()

    public: Any = sys.modules["jax"]
    for each in (module, public):
        if getattr(each, "clear_caches", None) is truth:
            each.clear_caches = cleared
