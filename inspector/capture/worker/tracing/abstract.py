"""Large arrays that take no memory: programs that would make them are compiled, and not executed.

Their results are arrays of zeros, whose shards are all views of one mapping of memory that nothing has been written to.
Programs without large arrays are executed as ever. Touched are `pxla.ExecuteReplicated`, `pxla.batched_device_put`,
`dispatch._device_put_impl` and `array.make_array_from_callback` of `jax._src` (0.7 to 0.12).
"""

from __future__ import annotations

import functools
import math
import mmap
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..patches import change_after_import, instead_of

MAX_BYTES = 64 << 20
"""Limit for all arrays of a program, or for one array, on the devices of this process; more is not allocated."""

MAPPED_BYTES = (1 << 42, 1 << 38, 1 << 34)
"""Sizes of the mapping, the first that the system grants."""

NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def install(complain: Callable[[str], None], tell: Callable[[str], None]) -> None:
    """Have JAX make large arrays of zeros without memory, from its import on."""
    zeros = _Zeros(tell)
    changes: dict[str, Callable[[ModuleType], None]] = {
        "jax._src.interpreters.pxla": functools.partial(_change_execution, zeros=zeros, complain=complain),
        "jax._src.dispatch": functools.partial(_change_put, zeros=zeros, complain=complain),
        "jax._src.array": functools.partial(_change_callback, zeros=zeros, complain=complain),
    }
    change_after_import(changes)


class _Zeros:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self.state = threading.local()
        self._tell = tell
        self._has_told = False
        self._map: mmap.mmap | None = None

    def shards(self, aval: Any, sharding: Any) -> list[Any]:
        """The shards on the devices of this process; of a PRNG key, those of its words."""
        jax, core = sys.modules["jax"], sys.modules["jax._src.core"]
        if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended):
            sharding = sys.modules["jax._src.sharding_impls"].physical_sharding(aval, sharding)
            aval = core.physical_aval(aval)
        view = self._view(sharding.shard_shape(aval.shape), aval.dtype)
        self.state.busy = True
        try:
            return [jax.device_put(view, device) for device in sharding._addressable_device_assignment]
        finally:
            self.state.busy = False

    def array(self, shape: tuple[int, ...], dtype: Any, sharding: Any) -> Any:
        """A committed array."""
        jax = sys.modules["jax"]
        shards = self.shards(jax.ShapeDtypeStruct(shape, dtype), sharding)
        return jax.make_array_from_single_device_arrays(tuple(shape), sharding, shards)

    def is_wanted(self, size: float) -> bool:
        """Return whether so many bytes may be allocated; reports once if not."""
        if getattr(self.state, "busy", False) or size <= MAX_BYTES:
            return False
        if not self._has_told:
            self._has_told = True
            self._tell(f"programs with arrays of more than {MAX_BYTES >> 20} MiB were not executed: they return zeros")
        return True

    def _view(self, shape: tuple[int, ...], dtype: Any) -> Any:
        import numpy as np

        count = math.prod(shape)
        if self._map is None:
            self._map = _mapping()
        return np.frombuffer(self._map, dtype, count=count).reshape(shape) if count else np.zeros(shape, dtype)


def _mapping() -> mmap.mmap:
    for size in MAPPED_BYTES:
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        except (OSError, ValueError):
            continue
    raise MemoryError("the system maps no memory for arrays that are not allocated")


def _change_execution(module: Any, zeros: _Zeros, complain: Callable[[str], None]) -> None:
    execute = getattr(module, "ExecuteReplicated", None)
    can_put = hasattr(module, "batched_device_put")
    if execute is None or not can_put or "out_avals" not in getattr(module.ResultsHandler, "__slots__", ()):
        complain("has no pxla.ExecuteReplicated, ResultsHandler.out_avals or batched_device_put: arrays are allocated")
        return
    begin, call = execute.__init__, execute.__call__

    @functools.wraps(begin)
    def begins(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        if zeros.is_wanted(_size(self)):
            self.has_unordered_effects = True  # JAX calls such a program through Python, each time

    @functools.wraps(call)
    def called(self: Any, *args: Any) -> Any:
        if not self.has_unordered_effects or not zeros.is_wanted(_size(self)):
            return call(self, *args)
        made = self.out_handler
        shards = [
            zeros.shards(aval, sharding) for aval, sharding in zip(made.out_avals, made.out_shardings, strict=True)
        ]
        results = made(shards)
        if self.mut is None:
            return results
        return [result for at, result in zip(self.mut.out_mut, results, strict=False) if at is None]

    @instead_of(module, "batched_device_put")
    def batched(put: Any, aval: Any, sharding: Any, xs: Any, devices: Any, *args: Any, **kwargs: Any) -> Any:
        if zeros.is_wanted(_bytes(aval)):
            return zeros.array(aval.shape, aval.dtype, sharding)
        return put(aval, sharding, xs, devices, *args, **kwargs)

    execute.__init__, execute.__call__ = begins, called


def _change_put(module: ModuleType, zeros: _Zeros, complain: Callable[[str], None]) -> None:
    what = "has no dispatch._device_put_impl: arrays that are moved between devices are allocated"

    @instead_of(module, "_device_put_impl", lambda: complain(what))
    def put(truth: Any, x: Any, *args: Any, device: Any, **kwargs: Any) -> Any:
        jax = sys.modules["jax"]
        if isinstance(device, jax.Device):
            sharding = jax.sharding.SingleDeviceSharding(device)
        else:
            sharding = getattr(device, "sharding", device)
        if isinstance(sharding, jax.sharding.Sharding) and hasattr(x, "dtype") and zeros.is_wanted(_bytes(x)):
            return zeros.array(x.shape, x.dtype, sharding)
        return truth(x, *args, device=device, **kwargs)


def _change_callback(module: ModuleType, zeros: _Zeros, complain: Callable[[str], None]) -> None:
    what = "has no array.make_array_from_callback: what callbacks make is allocated"

    @instead_of(module, "make_array_from_callback", lambda: complain(what))
    def make(truth: Any, shape: Any, sharding: Any, data_callback: Any, dtype: Any = None, **kwargs: Any) -> Any:
        import numpy as np

        own = getattr(sharding, "sharding", sharding)
        given = {**kwargs, **({} if dtype is None else {"dtype": dtype})}
        if math.prod(shape) <= MAX_BYTES // 16 or not hasattr(own, "addressable_devices_indices_map"):
            return truth(shape, sharding, data_callback, **given)
        if dtype is None:
            dtype = np.asarray(
                data_callback(next(iter(own.addressable_devices_indices_map(tuple(shape)).values())))
            ).dtype
        if not zeros.is_wanted(math.prod(shape) * np.dtype(dtype).itemsize):
            return truth(shape, sharding, data_callback, **given)
        return zeros.array(tuple(shape), dtype, own)


def _size(replicated: Any) -> float:
    executable = replicated.xla_executable
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception:  # not every backend knows
        return sum(map(_bytes, replicated.out_handler.out_avals))
    sizes = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    return float(sizes * len(executable.local_devices()))


def _bytes(value: Any) -> float:
    """Bytes of an array or type, on all devices together; 0 for what is none."""
    return float(math.prod(value.shape) * getattr(value.dtype, "itemsize", 4)) if hasattr(value, "shape") else 0.0
