"""Participants of StableHLO's collectives, by the same classes as for HLO.

Source of the meanings: StableHLO, docs/spec.md, and stablehlo/dialect/StablehloAttrs.td.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from ..grammar import Grammar, several
from ..record import Record
from ..sharding_syntax.mesh import MAX_DEVICES, AxisRef, MeshSyntax
from ..sharding_syntax.replica_groups import ListGroups, MeshGroups, ReplicaGroups
from .lists import symbol, unquote
from .types import TensorType, parse_type

MAX_ELEMENTS = 4 * MAX_DEVICES
"""More integers than this in one literal are taken for a broken text, not expanded."""


class Integers(Record, frozen=True):
    """The integers of a literal, row by row, and its sizes."""

    values: tuple[int, ...]
    dims: tuple[int, ...]

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The literal as rows of its last dimension."""
        width = self.dims[-1] if self.dims else 1
        return tuple(self.values[first : first + width] for first in range(0, len(self.values), width or 1))


class _OnMesh(Record, frozen=True):
    mesh: str | MeshSyntax
    axes: tuple[AxisRef, ...]


def parse_groups(text: str, mesh: Callable[[str], MeshSyntax | None]) -> ReplicaGroups:
    """The value of `replica_groups`, where `mesh` finds a mesh by its name; raises ParseError or ValueError.

    In groups of different sizes the shorter ones are filled up with -1.
    """
    groups = _parse_groups(text)
    if isinstance(groups, Integers):
        return ListGroups(tuple(tuple(device for device in row if device >= 0) for row in groups.rows))
    found = mesh(groups.mesh) if isinstance(groups.mesh, str) else groups.mesh
    if found is None:
        raise ValueError(f"no mesh @{groups.mesh}")
    return MeshGroups(found, groups.axes)


def parse_pairs(text: str) -> tuple[tuple[int, int], ...]:
    """The value of `source_target_pairs`; raises ParseError or ValueError."""
    pairs = parse_integers(text)
    if pairs.values and pairs.dims[-1:] != (2,):
        raise ValueError("not a list of pairs")
    return tuple((source, target) for source, target in pairs.rows)


def _dense(elements: str | None, written: str) -> Integers:
    """Elements are nested lists, one number for all, or a string of the elements' bytes."""
    kind = parse_type(written)
    assert isinstance(kind, TensorType)
    dims = tuple(dim or 0 for dim in kind.dims)
    count = math.prod(dims)
    if count > MAX_ELEMENTS:
        raise ValueError(f"a literal of more than {MAX_ELEMENTS} integers")
    if elements is None:
        values: Sequence[int] = ()
    elif elements.startswith("0x"):
        values = _from_bytes(elements, int(kind.element[1:]) // 8)
    else:
        values = json.loads(f"[{elements.translate(_NO_BRACKETS)}]")
    if len(values) == 1:
        values = (*values,) * count
    if len(values) != count:
        raise ValueError(f"{len(values)} integers in a literal of {count}")
    return Integers(tuple(values), dims)


def _from_bytes(text: str, width: int) -> Sequence[int]:
    """The integers whose bytes, little-endian, are printed in hexadecimal, `0x0100000000000000`."""
    data = bytes.fromhex(text.removeprefix("0x"))
    return [int.from_bytes(data[i : i + width], "little", signed=True) for i in range(0, len(data), max(width, 1))]


_NO_BRACKETS = str.maketrans("[]", "  ")
_GRAMMAR = Grammar(
    "stablehlo_attributes",
    {
        "list_groups": lambda integers: integers,
        "mesh_groups": _OnMesh,
        "mesh": lambda *parts: MeshSyntax(several(*parts[:-1]), parts[-1] and parts[-1].values),
        "mesh_axis": lambda name, size: (name, size),
        "axes": several,
        "axis": AxisRef,
        "sub_axis": lambda pre_size, size: (pre_size, size),
        "dense": _dense,
        "channel": lambda handle, _: handle,
        "INT": int,
        "STRING": unquote,
        "SYMBOL": symbol,
    },
)

parse_integers: Callable[[str], Integers] = _GRAMMAR.reader("dense")
"""A literal of integers, `dense<[[0, 1]]> : tensor<1x2xi64>`; raises ParseError."""
parse_channel: Callable[[str], int] = _GRAMMAR.reader("channel")
"""The number in `#stablehlo.channel_handle<…>`; raises ParseError."""
_parse_groups: Callable[[str], Integers | _OnMesh] = _GRAMMAR.reader("groups")
