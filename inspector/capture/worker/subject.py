"""What is captured, and where: the `subject` event."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

import jax
import jaxlib

from ..protocol.request import Request, split_function
from .channel import Channel
from .inputs.resolve import Resolved
from .program import meshes
from .simulated.topology import Topology


class Subject:
    """What is known of the captured function; sent again whenever there is more."""

    def __init__(self, request: Request, found: Resolved, channel: Channel, topology: Topology | None = None) -> None:
        self._request = request
        self._topology = topology
        self._module = found.module
        self._channel = channel
        self._meshes: list[Any] = [*meshes.in_context(), *meshes.in_function(found.function)]
        self._device_assignment: list[int] = []
        self._send()

    def add_meshes(self, found: Iterable[Any]) -> None:
        """Meshes that the program uses; those among the script's globals come after them."""
        self._meshes += found
        self._send()

    def set_devices(self, devices: Iterable[Any]) -> None:
        """The devices that the compiled program runs on, in the order of its partitions."""
        self._device_assignment = [int(device.id) for device in devices]
        self._send()

    def _send(self) -> None:
        namespace = vars(self._module)
        topology = self._topology
        devices = jax.devices() if topology is None else topology.devices
        found = meshes.describe([*self._meshes, *meshes.in_namespace(namespace)], namespace)
        if topology is not None:
            ids = [int(device.id) for device in devices]
            found = [{**mesh, "device_ids": [ids[stand_in] for stand_in in mesh["device_ids"]]} for mesh in found]
        self._channel.send(
            "subject",
            function=split_function(self._request.function)[1],
            script=getattr(self._module, "__file__", None),
            target=self._request.target,
            platform=jax.default_backend() if topology is None else topology.platform,
            device_count=jax.device_count(),
            jax=jax.__version__,
            jaxlib=jaxlib.__version__,
            python=platform.python_version(),
            meshes=found,
            device_assignment=self._device_assignment,
            device_kind=str(devices[0].device_kind),
            devices=[place for device in devices if (place := _place(device)) is not None],
        )


def _place(device: Any) -> dict[str, Any] | None:
    """Where a device is; None for one that is nowhere in particular, as a fake CPU device.

    The coordinates of a GPU are slice, host and number (xla/pjrt/gpu/se_gpu_topology_description.cc).
    """
    coords = getattr(device, "coords", None)
    if coords is None:
        return None
    island = coords[0] if device.platform == "gpu" else getattr(device, "slice_index", None)
    return {
        "id": int(device.id),
        "coords": [int(c) for c in coords],
        "core": int(getattr(device, "core_on_chip", None) or 0),
        "slice": int(island or 0),
        "process": int(device.process_index),
    }
