"""The subject of a capture: the meshes of a program, where they are found, and its devices."""

from __future__ import annotations

import functools
import linecache
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from ..protocol import events
from ..protocol.events import Device, Subject
from ..protocol.request import Request, split_function
from . import failures
from .channel import Channel
from .program.avals import mesh_key
from .script_objects import attribute, closed_over, is_a

if TYPE_CHECKING:
    from .inputs.resolve import Resolved
    from .simulated.topology import Topology


class KnownSubject:
    """The known facts about the captured function; sent again whenever there are more."""

    def __init__(self, request: Request, found: Resolved, channel: Channel, topology: Topology | None = None) -> None:
        self._request = request
        self._topology = topology
        self._module, self._made = found.module, [*found.meshes, *meshes_in_frames()]
        self._channel = channel
        self._meshes: list[Any] = [*meshes_in_context(), *meshes_in_function(found.function)]
        self._device_assignment: tuple[int, ...] = ()
        self._send()

    def add_meshes(self, found: Iterable[Any]) -> None:
        """Meshes that the program uses; those among the script's globals come after them."""
        self._meshes += found
        self._send()

    def mesh_of(self, devices: int) -> Any:
        """The first mesh of the program with so many devices; None if there is none."""
        return next((mesh for mesh in self._meshes if not mesh.empty and mesh.size == devices), None)

    def set_devices(self, devices: Iterable[Any]) -> None:
        """The devices that the compiled program runs on, in the order of its partitions."""
        self._device_assignment = tuple(int(device.id) for device in devices)
        self._send()

    def _send(self) -> None:
        namespace = vars(self._module)
        file, name = split_function(self._request.function)  # a notebook's cell is in no file
        topology = self._topology
        devices = jax.devices() if topology is None else topology.devices
        found = described_meshes([*self._meshes, *meshes_in_namespace(namespace), *self._made], namespace)
        if topology is not None:
            ids = [int(device.id) for device in devices]
            found = [
                replace(mesh, device_ids=tuple(ids[place] for place in topology.places(mesh.device_ids)))
                for mesh in found
            ]
        subject = Subject(
            function=name,
            script=getattr(self._module, "__file__", None) or (file if file in linecache.cache else None),
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
            interpreter=self._request.python,
            requested=self._request.devices is not None or self._request.target != "cpu",
        )
        self._channel.send(subject)


def _place(device: Any) -> Device | None:
    """Return the position of a device; None for one without a position, such as a fake CPU device.

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


MAX_HELD = 100
"""Values of a container or an object that are searched."""

MAX_DEPTH = 8
"""Maximum depth of nested closures that are searched."""


def described_meshes(meshes: Iterable[Any], namespace: Mapping[str, Any]) -> list[events.Mesh]:
    """The distinct meshes as the subject has them, in the order given.

    A mesh without devices counts only where no mesh with devices has its axes.
    """
    names = {_key(value): name for name, value in reversed(list(namespace.items())) if _is_mesh(value)}
    concrete: dict[Any, events.Mesh] = {}
    abstract: dict[Any, events.Mesh] = {}
    for mesh in meshes:
        if mesh.axis_names:
            found = abstract if isinstance(mesh, AbstractMesh) else concrete
            if (key := _key(mesh)) not in found:
                found[key] = _described(mesh, names.get(key))
    known = {_axes_key(mesh) for mesh in concrete.values()}
    return [*concrete.values(), *(each for each in abstract.values() if _axes_key(each) not in known)]


def meshes_in_namespace(namespace: Mapping[str, Any]) -> Iterator[Any]:
    """The meshes among a script's variables: alone, in a sharding, or inside of objects and containers."""
    return _meshes_among(_within(list(namespace.values()), 2), Mesh)


def _within(values: Iterable[Any], depth: int) -> Iterator[Any]:
    for value in values:
        yield value
        if depth and (not is_a(value, ModuleType) or failures.is_users(str(attribute(value, "__file__")))):
            held = value if is_a(value, (tuple, list, dict)) else attribute(value, "__dict__")
            inner = list(held.values()) if is_a(held, dict) else held if is_a(held, (tuple, list)) else ()
            yield from _within(inner[:MAX_HELD], depth - 1)


def meshes_in_frames() -> Iterator[Any]:
    """The meshes among the local variables of the user's functions that are being run: of `main`, mostly."""
    for frame in failures.outwards(sys._getframe()):
        if failures.is_users(frame.f_code.co_filename):
            yield from meshes_in_namespace(frame.f_locals)


def meshes_in_context() -> Iterator[Any]:
    """The mesh that `jax.set_mesh` has set, and that of `with mesh:`."""
    getters = [getattr(jax.sharding, name, None) for name in ("get_mesh", "get_abstract_mesh")]
    for getter in (*getters, entered_mesh):
        try:
            mesh = getter()  # type: ignore[misc]
        except (AttributeError, TypeError, ValueError):
            continue
        if mesh is not None and mesh.axis_names:
            yield mesh


def entered_mesh() -> Any:
    """The mesh of `with mesh:`, an empty one outside of any."""
    return sys.modules["jax._src.mesh"].thread_resources.env.physical_mesh


def meshes_in_function(function: Any) -> Iterator[Any]:
    """The meshes that a function carries in its closures: that is where `shard_map` keeps its own."""
    seen: set[int] = set()
    level = [function]
    for _ in range(MAX_DEPTH):
        fresh = {id(value): value for value in level if id(value) not in seen}
        seen |= fresh.keys()
        yield from filter(_is_mesh, fresh.values())
        level = [held for value in fresh.values() for held in _held_by(value) if callable(held) or _is_mesh(held)]


def _held_by(function: Any) -> Iterable[Any]:
    if is_a(function, functools.partial):
        return (function.func, *function.args, *function.keywords.values())
    if is_a(function, MethodType):
        return (function.__func__,)
    return (attribute(function, "__wrapped__"), *closed_over(function).values())


def meshes_in_jaxpr(jaxpr: Any) -> Iterator[Any]:
    """The meshes of shard_maps and shardings among the parameters of all equations."""
    from .program.structure import equations_of  # not above: a list of programs does without

    for equation in equations_of(jaxpr):
        for value in equation.params.values():
            yield from _meshes_among(value if isinstance(value, (tuple, list)) else (value,))


def meshes_in_shardings(leaves: Iterable[Any]) -> Iterator[Any]:
    """The meshes of the arrays, types or shardings among `leaves`."""
    return _meshes_among(
        leaf if isinstance(leaf, NamedSharding) else getattr(leaf, "sharding", None) for leaf in leaves
    )


def _meshes_among(values: Iterable[Any], kinds: Any = (Mesh, AbstractMesh)) -> Iterator[Any]:
    for value in values:
        if is_a(value, kinds):
            yield value
        elif is_a(value, NamedSharding):
            yield value.mesh


def _is_mesh(value: Any) -> bool:
    return is_a(value, (Mesh, AbstractMesh))


def _described(mesh: Any, name: str | None) -> events.Mesh:
    types: Any = getattr(mesh, "axis_types", None) or ("Auto",) * len(mesh.axis_names)
    axes = tuple(
        events.MeshAxis(str(axis), int(mesh.shape[axis]), getattr(kind, "name", kind).lower())
        for axis, kind in zip(mesh.axis_names, types, strict=True)
    )
    ids = range(mesh.size) if isinstance(mesh, AbstractMesh) else mesh.device_ids.flat
    return events.Mesh(axes, tuple(int(i) for i in ids), name, mesh_key(mesh))


def _key(mesh: Any) -> Any:
    if isinstance(mesh, AbstractMesh):
        return mesh.axis_names, mesh.axis_sizes
    return mesh.axis_names, np.shape(mesh.devices), tuple(mesh.device_ids.flat)


def _axes_key(mesh: events.Mesh) -> Any:
    return tuple((axis.name, axis.size) for axis in mesh.axes)
