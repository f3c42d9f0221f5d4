"""What a compiler has to be told so that it compiles for a target that is not there."""

from __future__ import annotations

from typing import Any

from .chips import Chip
from .target import Target

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
    """Whether each axis of a slice's torus closes to a ring; libtpu does not decide it by itself."""
    first, step = chip.integer("wraps_from"), chip.integer("wraps_by")
    closed = [size >= first and size % step == 0 for size in shape] + [False] * 3
    return closed[0], closed[1], closed[2]


def _target_config(chip: Chip) -> str:
    """A GpuTargetConfigProto in protobuf's text format (xla/stream_executor/device_description.proto)."""
    own = dict(chip.facts["device"])
    links = own.pop("active_links", None)
    fields: dict[str, Any] = {
        **DEVICE,
        "memory_bandwidth": int(chip.figure("hbm_bandwidth")),
        "device_memory_size": int(chip.figure("hbm_bytes")),
        "name": chip.kinds[0],
        **own,
    }
    if links is not None:
        fields["device_interconnect_info"] = {"active_links": links}
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
