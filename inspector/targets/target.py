"""What one may compile for, and how that is written.

cpu        cpu:16           fake CPU devices, as many as the script needs or as are named
local                       the devices that JAX finds by itself
tpu:v5p:4x4x4               chips along each side of a slice; `*2`: two slices; `:cores`: one device per core
gpu:h100:8 gpu:h100:8x4     GPUs of one node; of each of four nodes
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from ...parsers.errors import ShardscopeError
from .chips import Chip, chips_of

Platform = Literal["cpu", "local", "tpu", "gpu"]

SHAPES = {"tpu": "4x4x4", "gpu": "8"}
"""An example of the last part, by platform."""

MOST_DEVICES = 1 << 14
"""Nobody compiles for more in one process; libtpu and the fake CPU devices grow with their number."""

_PART = re.compile(r"(?P<shape>\d{1,6}(?:x\d{1,6})*)(?:\*(?P<slices>\d{1,4}))?", re.ASCII)


class TargetError(ShardscopeError):
    """A target that is not one, with what would be."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target as it was asked for.

    `shape` is, for a TPU, the chips along each axis of a slice's torus; for GPUs those of one node, then the nodes.
    `devices` is how many JAX devices that makes, None where it is left open.
    """

    text: str
    platform: Platform
    chip: Chip | None = None
    shape: tuple[int, ...] = ()
    slices: int = 1
    cores: bool = False
    devices: int | None = None


def parse_target(text: str) -> Target:
    """The target that a text names.

    Raises:
        TargetError: no such target; the message says what is wrong with it and what would do.
    """
    platform, *parts = text.strip().split(":")
    match platform:
        case "local" if not parts:
            return Target(text, "local")
        case "cpu" if not parts:
            return Target(text, "cpu")
        case "cpu" if len(parts) == 1 and parts[0].isdecimal():
            return Target(text, "cpu", devices=_checked(text, int(parts[0][:9])))
        case "tpu" | "gpu":
            return _described(text, platform, parts)
        case "cpu" | "local":
            behind = "a number of devices" if platform == "cpu" else "nothing"
            raise _error(text, f"{platform} takes {behind} behind it")
    raise _error(text, "targets are cpu, cpu:N, local, tpu:CHIP:SHAPE and gpu:CHIP:N")


def _described(text: str, platform: Literal["tpu", "gpu"], parts: list[str]) -> Target:
    chips = chips_of(platform)
    chip = chips.get(parts[0].lower()) if parts else None
    if chip is None:
        named = f"there is no {platform.upper()} {parts[0]!r}" if parts and parts[0] else "which chip"
        raise _error(text, f"{named}: {', '.join(chips)} are known")
    cores = platform == "tpu" and len(parts) == 3 and parts[2] == "cores"
    match = _PART.fullmatch(parts[1]) if len(parts) == 2 + cores else None
    if match is None or (platform == "gpu" and match["slices"]):
        raise _error(text, f"how many: write it as {platform}:{parts[0]}:{SHAPES[platform]}")
    shape = tuple(map(int, match["shape"].split("x")))
    slices = int(match["slices"] or 1)
    if 0 in (*shape, slices):
        raise _error(text, "a size is zero")
    if platform == "gpu":
        if len(shape) > 2:
            raise _error(text, "GPUs are so many per node, times nodes: 8x4")
        per_node, nodes = (*shape, 1)[:2]
        shape = (per_node, nodes)
        if per_node > chip.integer("node_size"):
            raise _error(text, f"{chip.title}: at most {chip.integer('node_size')} in a node; write 8x4 for four nodes")
        return Target(text, platform, chip, shape, devices=_checked(text, per_node * nodes))
    if len(shape) > chip.integer("torus_axes"):
        raise _error(text, f"{chip.title} slices have {chip.integer('torus_axes')} axes; write *2 for two slices")
    per_chip = chip.integer("devices_per_chip")
    if cores and not chip.text("megacore"):
        raise _error(text, f"{chip.title} has {per_chip} device{'s'[: per_chip - 1]} per chip, whatever one asks for")
    count = math.prod(shape) * slices * (chip.integer("cores_per_chip") if cores else per_chip)
    return Target(text, platform, chip, shape, slices, cores, _checked(text, count))


def _checked(text: str, devices: int) -> int:
    if not 0 < devices <= MOST_DEVICES:
        raise _error(text, f"{devices} devices; from 1 to {MOST_DEVICES} can be compiled for")
    return devices


def _error(text: str, problem: str) -> TargetError:
    return TargetError(f"cannot compile for target {text[:100]!r}: {problem}")
