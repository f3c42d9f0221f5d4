"""Targets of compilation, their spelling, and what a compiler needs to know of absent devices.

cpu        cpu:16           fake CPU devices, as many as the script needs or as are named
local                       the devices that JAX finds by itself
tpu:v5p:4x4x4               chips along each side of a slice; `*2`: two slices; `:cores`: one device per core
gpu:h100:8 gpu:h100:8x4     GPUs of one node; of each of four nodes
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import Any, Literal

from ...parsers.errors import ShardscopeError
from ...parsers.record import Record
from .chips import Chip, chips_of

Platform = Literal["cpu", "local", "tpu", "gpu"]

SHAPES = {"tpu": "4x4x4", "gpu": "8"}
"""An example of the last part, by platform."""

MAX_DEVICES = 1 << 14
"""Nobody compiles for more in one process; libtpu and the fake CPU devices grow with their number."""

_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_PART = re.compile(r"(?P<shape>\d{1,6}(?:x\d{1,6})*)(?:\*(?P<slices>\d{1,4}))?", re.ASCII)


class TargetError(ShardscopeError):
    """A target that is not one, with what would be."""


class Target(Record, frozen=True):
    """A target as requested.

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
        case "cpu" if len(parts) == 1 and _COUNT.fullmatch(parts[0]):
            return Target(text, "cpu", devices=_checked(text, int(parts[0])))
        case "tpu" | "gpu":
            return _described(text, platform, parts)
        case "cpu" | "local":
            behind = f"a number of devices, at most {MAX_DEVICES}," if platform == "cpu" else "nothing"
            raise _error(text, f"{platform} takes {behind} after it")
    near = get_close_matches(platform, ("cpu", "local", "tpu", "gpu"), n=1)
    meant = f"did you mean {':'.join((near[0], *parts))}? " if near else ""
    raise _error(text, f"{meant}targets are cpu, cpu:N, local, tpu:CHIP:SHAPE and gpu:CHIP:N")


def _described(text: str, platform: Literal["tpu", "gpu"], parts: list[str]) -> Target:
    chips = chips_of(platform)
    chip = chips.get(parts[0].lower()) if parts else None
    if chip is None:
        named = f"unknown {platform.upper()} {parts[0]!r}" if parts and parts[0] else f"add a {platform.upper()}"
        near = get_close_matches(parts[0].lower(), chips, n=1) if parts else []
        raise _error(text, f"{named}; {f'did you mean {near[0]}? ' if near else ''}known: {', '.join(chips)}")
    cores = platform == "tpu" and len(parts) == 3 and parts[2] == "cores"
    match = _PART.fullmatch(parts[1]) if len(parts) == 2 + cores else None
    if match is None or (platform == "gpu" and match["slices"]):
        raise _error(text, f"add a size: {platform}:{parts[0]}:{SHAPES[platform]}")
    shape = tuple(map(int, match["shape"].split("x")))
    slices = int(match["slices"] or 1)
    if 0 in (*shape, slices):
        raise _error(text, "a size is zero")
    if platform == "gpu":
        if len(shape) > 2:
            raise _error(text, "give GPUs per node, times nodes: 8x4")
        per_node, nodes = (*shape, 1)[:2]
        shape = (per_node, nodes)
        if per_node > chip.integer("node_size"):
            raise _error(text, f"{chip.title}: at most {chip.integer('node_size')} in a node; write 8x4 for four nodes")
        return Target(text, platform, chip, shape=shape, devices=_checked(text, per_node * nodes))
    if len(shape) > chip.integer("torus_axes"):
        raise _error(text, f"{chip.title} slices have {chip.integer('torus_axes')} axes; write *2 for two slices")
    per_chip = chip.integer("devices_per_chip")
    if cores and not chip.text("megacore"):
        raise _error(text, f"{chip.title} has {per_chip} device{'s'[: per_chip - 1]} per chip; that cannot be chosen")
    count = math.prod(shape) * slices * (chip.integer("cores_per_chip") if cores else per_chip)
    return Target(text, platform, chip, shape=shape, slices=slices, cores=cores, devices=_checked(text, count))


def _checked(text: str, devices: int) -> int:
    if not 0 < devices <= MAX_DEVICES:
        raise _error(text, f"{devices} devices; from 1 to {MAX_DEVICES} can be compiled for")
    return devices


def _error(text: str, problem: str) -> TargetError:
    return TargetError(f"cannot compile for target {text[:100]!r}: {problem}")


DEVICE = {
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "threads_per_core_limit": 2048,
    "shared_memory_per_block": 49152,
    "block_dim_limit_x": 2147483647,
    "block_dim_limit_y": 65535,
    "block_dim_limit_z": 65535,
    "registers_per_core_limit": 65536,
    "registers_per_block_limit": 65536,
}
"""Fields of a GpuDeviceInfoProto that are the same for most; a chip's own win."""

NOTHING_TO_TUNE_ON = {"xla_gpu_autotune_level": "0"}
"""Compiler options without which XLA would time kernels, for which it needs the GPU."""


def topology_of(target: Target) -> dict[str, Any] | None:
    """The fields of the worker's `Topology`, as JSON has them; None for a target whose devices are there."""
    chip = target.chip
    if chip is None:
        return None
    if target.platform == "tpu":
        options: dict[str, Any] = {"wrap": wraps(chip, target.shape)}
        if chip.text("megacore") and not target.cores:
            options["chip_config_name"] = chip.text("megacore")
        if target.slices > 1:
            options["num_slices"] = target.slices
        name = f"{chip.text('topology')}:{'x'.join(map(str, target.shape))}"
        return {"platform": "tpu", "plugin": "tpu", "lowering": "tpu", "name": name, "options": options}
    per_node, nodes = target.shape
    plugin = "rocm" if chip.text("platform_name") == "ROCM" else "cuda"
    return {
        "platform": "gpu",
        "plugin": plugin,
        "lowering": plugin,
        "name": "",
        # Slices, hosts of a slice, devices of a host: XLA calls GPUs a slice that share fast links.
        "options": {"target_config": _target_config(chip), "topology": f"{nodes}x1x{per_node}"},
        "compiler_options": NOTHING_TO_TUNE_ON,
    }


def wraps(chip: Chip, shape: tuple[int, ...]) -> tuple[bool, bool, bool]:
    """Return whether each axis of a slice's torus closes to a ring; libtpu leaves it to the caller."""
    step = chip.integer("wraps_by")
    x, y, z, *_ = (*(size % step == 0 for size in shape), False, False, False)
    return x, y, z


def _target_config(chip: Chip) -> str:
    """A GpuTargetConfigProto in protobuf's text format (xla/stream_executor/device_description.proto)."""
    fields: dict[str, Any] = {
        **DEVICE,
        "memory_bandwidth": int(chip.figure("hbm_bandwidth")),
        "device_memory_size": int(chip.figure("hbm_bytes")),
        "name": chip.kinds[0],
        **chip.facts["device"],
    }
    description = {
        "gpu_device_info": fields,
        "platform_name": chip.text("platform_name"),
        "device_description_str": chip.kinds[0],
    }
    return _proto(description)


def _proto(fields: dict[str, Any]) -> str:
    return " ".join(_field(name, value) for name, value in fields.items())


def _field(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"{name} {{ {_proto(value)} }}"
    # Names of enumerations are written bare, all other texts in quotes.
    quoted = isinstance(value, str) and name != "feature_extension"
    return f'{name}: "{value}"' if quoted else f"{name}: {value}"
