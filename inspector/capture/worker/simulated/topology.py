"""Devices that are not there: a compiler's description of them, and the fake CPU devices that stand in for them.

The script runs on fake CPU devices, where it may make arrays and compute. The i-th of them stands for the i-th device
of the topology, in the order of `jax.devices()` there. Where JAX orders devices by where they are (`jax.make_mesh`,
`mesh_utils`), it is asked about the devices that are meant; so a mesh has the order that it would have there.

The platform is CPU, whatever the script chooses: in JAX_PLATFORMS or JAX_PLATFORM_NAME before it imports JAX, in its
configuration after that, or with `jax.devices("gpu")`. Touches `jax._src.config`, whose `config` holds both, and
`jax._src.xla_bridge.get_backend` (0.7 to 0.12).
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from ...protocol.request import UsageError
from ...protocol.workspace import diverted
from ..channel import Channel
from ..failures import is_internal, line_being_run
from ..patches import change_after_import, instead_of

ORDERING = ("create_device_mesh", "create_hybrid_device_mesh")
"""The functions of `mesh_utils` that order devices by where they are."""

KERNEL_DEVICES = (
    "jax._src.tpu_info",
    "jax._src.pallas.mosaic.tpu_info",
    "jax._src.pallas.triton.gpu_info",
)
"""Modules in which kernels look up what they are lowered for, and the scripts that tune them (JAX 0.8 to 0.12)."""

SPLITS = ("TPU v5 lite", "TPU v5e")
"""Device kinds for which `jax.make_mesh` lets axes of a mesh split those of the torus (JAX 0.7 to 0.12)."""

ABSENT = ("not installed", "not implemented for", "No module named")
"""Words of JAX where it has no plugin for a platform (jax._src.xla_bridge, JAX 0.7 to 0.12)."""


@dataclass(eq=False)
class Topology:
    """The devices of a target.

    `platform` is what `jax.default_backend()` says there: `tpu` or `gpu`; `plugin` the name of JAX's plugin for it, and
    `lowering` the platform to lower for. `name` is the topology as the plugin calls it, `options` what else it wants to
    know of it. `asked` are lines of the user's that asked which backend it is.
    """

    platform: str
    plugin: str
    lowering: str
    name: str
    options: dict[str, Any]
    compiler_options: dict[str, str] = field(default_factory=dict)
    queried: dict[str, None] = field(default_factory=dict)

    @functools.cached_property
    def devices(self) -> tuple[Any, ...]:
        """The devices, in the order of `jax.devices()` there.

        Raises:
            UsageError: the plugin is not installed, or knows of no such topology.
        """
        from jax.experimental import topologies

        try:
            with diverted(os.devnull):  # libtpu tells at length that it finds no machine
                found = topologies.get_topology_desc(self.name, platform=self.plugin, **self.options).devices
        except Exception as error:  # what a plugin raises is of all kinds
            raise UsageError(*self._explanation(error)) from None
        return tuple(found)

    def stand_for(self, devices: Iterable[Any]) -> list[Any]:
        """The devices that some stand-ins stand for."""
        return [self.devices[place] for place in self.places(device.id for device in devices)]

    def places(self, ids: Iterable[int]) -> list[int]:
        """Return the positions of stand-ins in the order of `jax.devices()`; other processes' ids have gaps."""
        import jax

        known = {device.id: place for place, device in enumerate(jax.devices())}
        return [known.get(each, each) for each in ids]

    def watch_imports(self) -> None:
        """Have JAX ask about these devices from the moment at which the script imports it."""
        kernels = dict.fromkeys(KERNEL_DEVICES, self._patch_kernel_device)
        change_after_import({"jax._src.mesh_utils": self._patch_mesh_utils, "jax": self._patch_jax, **kernels})

    def _patch_mesh_utils(self, module: ModuleType) -> None:
        for name in ORDERING:
            instead_of(module, name)(self._ordered_as_there)

    def _ordered_as_there(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        import jax
        import numpy as np

        call = inspect.signature(function).bind(*args, **kwargs)
        given = call.arguments.get("devices")
        stand_ins = list(jax.devices() if given is None else given)
        if not stand_ins or any(device.platform != "cpu" for device in stand_ins):
            return function(*args, **kwargs)
        call.arguments["devices"] = self.stand_for(stand_ins)
        if call.arguments["devices"][0].device_kind in SPLITS and _called_by("make_mesh"):
            call.arguments["allow_split_physical_axes"] = True
        back = dict(zip(map(id, call.arguments["devices"]), stand_ins, strict=True))
        found = function(*call.args, **call.kwargs)
        return np.vectorize(lambda device: back[id(device)], otypes=[object])(found)

    def _patch_jax(self, module: ModuleType) -> None:
        @instead_of(module, "default_backend")
        def default_backend(truth: Any) -> str:
            caller = sys._getframe(1)
            if is_internal(caller.f_code.co_filename):
                return str(truth())
            self.queried[f"{caller.f_code.co_filename}:{caller.f_lineno}"] = None
            return self.platform

    def _patch_kernel_device(self, module: ModuleType) -> None:
        """Have the functions that read the kind of the default device, and its cores, read those of the target."""
        for name, attribute in (("get_device_kind", "device_kind"), ("get_num_device_cores", "num_cores")):
            if hasattr(module, name) and hasattr(self.devices[0], attribute):
                instead_of(module, name)(partial(self._of_the_target, attribute))

    def _of_the_target(self, attribute: str, truth: Callable[[], Any]) -> Any:
        from jax.sharding import get_abstract_mesh

        stated = getattr(get_abstract_mesh(), "abstract_device", None)
        if stated is not None and stated.device_kind != "cpu":  # a mesh that says what it is meant for
            return truth()
        return getattr(self.devices[0], attribute)

    def _explanation(self, error: Exception) -> tuple[str, str | None]:
        text = str(error).strip().partition("\n")[0]
        if any(word in text for word in ABSENT):
            why = f"nothing that compiles for {self.plugin} is installed in {sys.prefix}: {text}"
            return why, "`shardscope targets` says what to install"
        return f"the compiler knows of no such {self.platform} topology: {text}", None


def _called_by(name: str) -> bool:
    code = sys._getframe(2).f_code
    return code.co_name == name and is_internal(code.co_filename)


ABSENT_PLATFORMS = ("gpu", "cuda", "rocm", "tpu", "METAL")

OPTIONS = ("jax_platforms", "jax_platform_name")


class KeptPlatform:
    """Keeps JAX on CPU, and says so where the script wanted something else."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def watch_imports(self) -> None:
        """Have JAX changed from the moment at which the script imports it."""
        change_after_import({"jax._src.config": self._change, "jax._src.xla_bridge": self._change_backends})

    def _change_backends(self, module: ModuleType) -> None:
        @instead_of(module, "get_backend")
        def kept(truth: Any, platform: Any = None) -> Any:
            if platform in ABSENT_PLATFORMS:
                text = f"devices of {platform!r} were asked for: fake CPU devices stand in for them"
                self._channel.tell("info", text, line_being_run())
                platform = "cpu"
            return truth(platform)

    def _change(self, module: ModuleType) -> None:
        config: Any = getattr(module, "config", None)
        if not callable(getattr(type(config), "update", None)):
            return
        update = type(config).update

        @functools.wraps(update)
        def kept(self_: Any, name: str, value: Any) -> None:
            update(self_, name, self._cpu(name, value) if name in OPTIONS else value)

        type(config).update = kept
        for name in OPTIONS:
            if value := getattr(config, name, None):
                update(config, name, self._cpu(name, value))

    def _cpu(self, name: str, value: Any) -> Any:
        """The value that stands for one; other platforms than the CPU are left out."""
        platforms = [part.strip() for part in str(value or "").split(",") if part.strip()]
        if not platforms or platforms[0] == "cpu":
            return value
        text = f"{name} = {value!r} of the script was kept at 'cpu': fake CPU devices stand in for all others"
        self._channel.tell("info", text, line_being_run())
        return "cpu"
