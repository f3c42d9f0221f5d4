"""Changes of a program from outside, made to JAX as the script imports it.

Touches two private parts of JAX (0.7 to 0.12): `jax._src.shard_map._shard_map`, through which all spellings of
shard_map go, and `jax._src.mesh.Mesh.__new__`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...protocol.request import Overrides, UsageError
from .imports import change_after_import


class Overriding:
    """The changes, and which of them the script met."""

    def __init__(self, overrides: Overrides) -> None:
        self.check = overrides.check
        self.sizes = overrides.sizes
        self._texts = dict(overrides.texts)

    def watch_imports(self) -> None:
        """Have JAX changed from the moment at which the script imports it."""
        if self.check is not None:
            change_after_import({"jax._src.shard_map": self._change_shard_map})
        if self.sizes:
            change_after_import({"jax._src.mesh": self._change_mesh})

    def complain(self) -> None:
        """Say that there was nothing to change; otherwise a comparison would find no difference.

        Raises:
            UsageError: the script made no shard_map, or no mesh of these axes.
        """
        for text in self._texts.values():
            axes = ", ".join(self.sizes)
            made = f"mesh of the axes {axes}" if text.startswith("mesh") else "shard_map"
            raise UsageError(f"{text!r} changed nothing: the program made no {made}")

    def _change_shard_map(self, module: ModuleType) -> None:
        truth = _existing(module, "_shard_map")

        @functools.wraps(truth)
        def changed(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("_smap"):
                return truth(*args, **kwargs)
            self._texts.pop("check_vma", None)
            return truth(*args, **{**kwargs, "check_vma": self.check})

        module._shard_map = changed  # type: ignore[attr-defined]

    def _change_mesh(self, module: ModuleType) -> None:
        truth = _existing(module.Mesh, "__new__")

        @functools.wraps(truth)
        def changed(cls: Any, devices: Any, axis_names: Any, *args: Any, **kwargs: Any) -> Any:
            names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
            if set(names) == set(self.sizes):
                self._texts.pop("mesh", None)
                devices = _arranged(devices, tuple(self.sizes[name] for name in names))
            return truth(cls, devices, axis_names, *args, **kwargs)

        module.Mesh.__new__ = changed


def _arranged(devices: Any, shape: tuple[int, ...]) -> Any:
    """The same devices in another shape, or as many others as that needs; in JAX's order for them."""
    import jax
    import numpy as np
    from jax.experimental import mesh_utils

    given = np.asarray(devices)
    if given.shape == shape:
        return devices
    chosen = list(given.ravel())
    if len(chosen) != math.prod(shape):
        # More than there are: JAX says how many it wants, and the capture is begun anew with so many.
        chosen = jax.devices()[: math.prod(shape)]
    return mesh_utils.create_device_mesh(shape, chosen)


def _existing(owner: Any, name: str) -> Callable[..., Any]:
    found = getattr(owner, name, None)
    if found is None:
        import jax

        raise UsageError(f"JAX {jax.__version__} has no {owner.__name__}.{name}: it cannot be changed from outside")
    return found  # type: ignore[no-any-return]
