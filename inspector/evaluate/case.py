"""The files of a validation, read: two modules, and the values of all parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..capture.model import Device
from ..capture.protocol.case import INPUTS, OPTIMIZED, PROGRAM, SOURCE, UNAVAILABLE
from .collectives import OnDevices
from .element_types import Array
from .errors import NotEvaluatedError

Block = tuple[slice, ...]


class Output(NamedTuple):
    """A result of the program: its path, its sizes, and its block on each device."""

    path: str
    shape: tuple[int, ...]
    blocks: tuple[Block, ...]


class Case(NamedTuple):
    """A program before and after compilation; `blocks` has each parameter's block on each device, `places` the
    devices with their slices, by partition."""

    source: str
    optimized: str
    devices: int
    paths: tuple[str, ...]
    values: tuple[Array, ...]
    blocks: tuple[tuple[Block, ...], ...]
    outputs: tuple[Output, ...]
    compiler: str
    places: tuple[Device, ...] = ()

    def whole(self) -> list[OnDevices]:
        """The parameters, all of each on each device."""
        return [[value] * self.devices for value in self.values]

    def split(self) -> list[OnDevices]:
        """The parameters, on each device its block; devices with the same block share it."""
        found: list[OnDevices] = []
        for value, blocks in zip(self.values, self.blocks, strict=True):
            known: dict[str, Array] = {}
            found.append([known.setdefault(str(block), np.array(value[block], order="C")) for block in blocks])
        return found


def read_case(folder: Path) -> Case:
    """Read the files.

    Raises:
        NotEvaluatedError: there are none, with the reason.
    """
    if (folder / UNAVAILABLE).exists():
        raise NotEvaluatedError((folder / UNAVAILABLE).read_text())
    if not (folder / PROGRAM).exists():
        raise NotEvaluatedError("the program was not compiled")
    described: Any = json.loads((folder / PROGRAM).read_text())
    with np.load(folder / INPUTS) as arrays:
        values = tuple(_exact(arrays[f"arr_{number}"]) for number in range(len(arrays.files)))
    return Case(
        (folder / SOURCE).read_text("utf-8", "replace"),
        (folder / OPTIMIZED).read_text("utf-8", "replace"),
        described["devices"],
        tuple(each["path"] for each in described["parameters"]),
        values,
        tuple(_blocks(each["blocks"]) for each in described["parameters"]),
        tuple(Output(each["path"], tuple(each["shape"]), _blocks(each["blocks"])) for each in described["outputs"]),
        described.get("compiler", ""),
        tuple(Device(id, (), slice=slice) for id, slice in described.get("slices", ())),
    )


def _exact(array: Array) -> Array:
    wide = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype)
    return array.astype(wide, copy=False)


def _blocks(rows: list[list[tuple[int, int]]]) -> tuple[Block, ...]:
    return tuple(tuple(slice(start, stop) for start, stop in row) for row in rows)
