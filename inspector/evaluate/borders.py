"""Borders of a `shard_map` in the program before compilation, where every device otherwise has whole arrays.

Source: xla.sdy.GlobalToLocalShape and LocalToGlobalShape in xla/service/spmd/shardy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ...parsers.hlo import HloModule
from .collectives import OnDevices
from .element_types import Array, array_type
from .errors import NotEvaluatedError
from .operation import Operation, integers

ENTER, LEAVE = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"

_SHARDING = re.compile(r"<@\w+, \[(.*?)\](?=[,>])")
_DIMENSION = re.compile(r"\{([^{}]*)\}")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')
_MESHES = re.compile(r"xla\.sdy\.meshes=(.*)")
_MESH = re.compile(r"#sdy\.mesh<\[(.*?)\](?:, device_ids=\[([^\]]*)\])?>")


class Mesh:
    """The axes of a mesh by name, and for each place in it, row-major, the device."""

    def __init__(self, sizes: Mapping[str, int], devices: Sequence[int]) -> None:
        self.sizes = sizes
        self.devices = devices
        places: Array = np.unravel_index(np.arange(len(devices)), tuple(sizes.values()) or (1,))
        self.coordinates = [
            {name: int(column[place]) for name, column in zip(sizes, places, strict=False)}
            for place in range(len(devices))
        ]


def mesh_of(module: HloModule, devices: int) -> Mesh:
    """The mesh of a module; all of its meshes must be the same."""
    head = module.source.data[:1_000_000].decode("utf-8", "replace")
    text = _MESHES.search(head)
    found = {match.groups() for match in _MESH.finditer(text[1].replace('\\"', '"'))} if text else set()
    found = {(axes, order) for axes, order in found if axes}
    if len(found) != 1:
        raise NotEvaluatedError(f"a shard_map in a program with {len(found)} meshes")
    axes, order = found.pop()
    sizes = {name: int(size) for name, size in re.findall(r'"([^"]+)"=(\d+)', axes)}
    mesh = Mesh(sizes, integers(order) if order else range(devices))
    if len(mesh.devices) != devices:
        raise NotEvaluatedError(f"a mesh of {len(mesh.devices)} devices in a program for {devices}")
    return mesh


class Borders:
    """The borders of one module's shard_maps; `unequal` are those at which devices held unequal copies."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.unequal: list[Operation] = []

    def cross(self, target: str, operation: Operation, operands: list[OnDevices]) -> OnDevices:
        """The results on each device of the call at a border."""
        is_entry = target == ENTER
        attributes = operation.instruction.frontend_attributes
        side = "in_shardings" if is_entry else "out_shardings"
        text = next((value for key, value in attributes.items() if key.endswith(side)), "").replace('\\"', '"')
        manual_text = next((value for key, value in attributes.items() if key.endswith("manual_axes")), "")
        manual = [name for name, _ in _AXIS.findall(manual_text.replace('\\"', '"'))]
        shardings = _SHARDING.findall(text)
        values = operands[-len(operation.types) :]
        if len(values) == 1 and len(operation.types) > 1:
            values = [list(column) for column in zip(*values[0], strict=True)]
        if len(shardings) != len(values):
            raise NotEvaluatedError(f"{target}: {len(shardings)} shardings of {len(values)} values")
        columns = []
        for value, sharding, type in zip(values, shardings, operation.types, strict=True):
            parts = [self._parts(dimension, manual) for dimension in _DIMENSION.findall(sharding)]
            dims = array_type(type).dims
            columns.append(self._split(value, parts) if is_entry else self._joined(operation, value, parts, dims))
        return columns[0] if len(operation.types) == 1 else [tuple(row) for row in zip(*columns, strict=True)]

    def _parts(self, dimension: str, manual: list[str]) -> tuple[str, ...]:
        found = _AXIS.findall(dimension)
        if any(part for name, part in found if name in manual):
            raise NotEvaluatedError("a part of a mesh axis in a shard_map's specs")
        return tuple(name for name, _ in found if name in manual)

    def _block(self, place: int, parts: list[tuple[str, ...]], sizes: Sequence[int]) -> tuple[slice, ...]:
        found = []
        for axes, size in zip(parts, sizes, strict=True):
            number = 0
            for name in axes:
                number = number * self._mesh.sizes[name] + self._mesh.coordinates[place][name]
            found.append(slice(number * size, (number + 1) * size))
        return tuple(found)

    def _split(self, value: OnDevices, parts: list[tuple[str, ...]]) -> OnDevices:
        found: OnDevices = [None] * len(value)
        blocks: dict[tuple[int, tuple[slice, ...]], Array] = {}
        for place, device in enumerate(self._mesh.devices):
            whole = value[device]
            if whole is None:
                continue
            counts = [int(np.prod([self._mesh.sizes[name] for name in axes], dtype=np.int64)) for axes in parts]
            sizes = [size // count for size, count in zip(whole.shape, counts, strict=True)]
            block = self._block(place, parts, sizes)
            key = id(whole), tuple((each.start, each.stop) for each in block)  # one array for all that have the block
            found[device] = blocks.setdefault(key, whole[block])  # type: ignore[arg-type]
        return found

    def _joined(
        self, operation: Operation, value: OnDevices, parts: list[tuple[str, ...]], dims: tuple[int, ...]
    ) -> OnDevices:
        if any(each is None for each in value):
            raise NotEvaluatedError("a shard_map that only some devices run")
        whole: Array = np.empty(dims, value[0].dtype)
        first: dict[tuple[tuple[int, int], ...], Array] = {}
        is_equal = True
        blocks = {}
        for place, device in enumerate(self._mesh.devices):
            part = value[device]
            block = blocks[device] = self._block(place, parts, part.shape)
            key = tuple((each.start, each.stop) for each in block)
            if key not in first:
                first[key] = part
                whole[block] = part
            elif first[key] is not part and not _are_equal(first[key], part):
                is_equal = False
        if is_equal:
            return [whole] * len(value)
        self.unequal.append(operation)
        own: OnDevices = [None] * len(value)
        for device, block in blocks.items():  # a device goes on with what it has itself
            own[device] = whole.copy()
            own[device][block] = value[device]
        return own


def _are_equal(x: Array, y: Array) -> bool:
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    scale = float(np.nanmax(np.abs(x), initial=0.0))
    return bool(np.allclose(x, y, rtol=0, atol=1e-9 * (scale or 1), equal_nan=True))
