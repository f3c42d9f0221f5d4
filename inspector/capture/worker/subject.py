"""What is captured, and where."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import jaxlib

from ..protocol.events import Device, Subject
from ..protocol.request import Request, split_function
from .channel import Channel
from .inputs.resolve import Resolved
from .program import meshes
from .simulated.topology import Topology


class KnownSubject:
    """What is known of the captured function; sent again whenever there is more."""

    def __init__(self, request: Request, found: Resolved, channel: Channel, topology: Topology | None = None) -> None:
        self._request = request
        self._topology = topology
        self._module = found.module
        self._channel = channel
        self._meshes: list[Any] = [*meshes.in_context(), *meshes.in_function(found.function)]
        self._device_assignment: tuple[int, ...] = ()
        self._send()

    def add_meshes(self, found: Iterable[Any]) -> None:
        """Meshes that the program uses; those among the script's globals come after them."""
        self._meshes += found
        self._send()

    def set_devices(self, devices: Iterable[Any]) -> None:
        """The devices that the compiled program runs on, in the order of its partitions."""
        self._device_assignment = tuple(int(device.id) for device in devices)
        self._send()

    def _send(self) -> None:
        namespace = vars(self._module)
        topology = self._topology
        devices = jax.devices() if topology is None else topology.devices
        found = meshes.describe([*self._meshes, *meshes.in_namespace(namespace)], namespace)
        if topology is not None:
            ids = [int(device.id) for device in devices]
            found = [replace(mesh, device_ids=tuple(ids[stand_in] for stand_in in mesh.device_ids)) for mesh in found]
        subject = Subject(
            function=split_function(self._request.function)[1],
            script=getattr(self._module, "__file__", None),
            target=self._request.target,
            platform=jax.default_backend() if topology is None else topology.platform,
            device_count=jax.device_count(),
            jax=jax.__version__,
            jaxlib=jaxlib.__version__,
            python=platform.python_version(),
            meshes=tuple(found),
            device_assignment=self._device_assignment,
            device_kind=str(devices[0].device_kind),
            devices=tuple(place for device in devices if (place := _place(device)) is not None),
        )
        self._channel.send(subject)


def _place(device: Any) -> Device | None:
    """Where a device is; None for one that is nowhere in particular, as a fake CPU device.

    The coordinates of a GPU are slice, host and number (xla/pjrt/gpu/se_gpu_topology_description.cc).
    """
    coords = getattr(device, "coords", None)
    if coords is None:
        return None
    island = coords[0] if device.platform == "gpu" else getattr(device, "slice_index", None)
    core = getattr(device, "core_on_chip", None)
    return Device(
        int(device.id), tuple(int(c) for c in coords), int(core or 0), int(island or 0), int(device.process_index)
    )
