"""What JAX and XLA say of NamedShardings; a child process of the tests.

    python jax_oracle.py < CASES

Each line of input is {"axes": [[name, size], …], "order": [device, …], "entries": [[axis, …], …], "unreduced": [axis],
"shape": [size, …]}; each line of output {"pieces": {device: [[from, to], …]}, "spec", "sdy", "gspmd", "tiles",
"devices", "subgroups"}; "gspmd" is null, and nothing follows it, where JAX has no sharding of XLA's for it.
"""

import inspect
import json
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=16"

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir


def entry(axes):
    return None if not axes else axes[0] if len(axes) == 1 else tuple(axes)


def attribute(sharding, rank):
    with mlir.make_ir_context(), ir.Location.unknown():
        attribute = sharding._to_sdy_sharding(rank)
        cached = "attr_cache" in inspect.signature(attribute.build).parameters
        return str(attribute.build({}) if cached else attribute.build())


for line in sys.stdin:
    case = json.loads(line)
    devices = np.array([jax.devices()[device] for device in case["order"]]).reshape([s for _, s in case["axes"]])
    mesh = Mesh(devices, [name for name, _ in case["axes"]], axis_types=(AxisType.Explicit,) * len(case["axes"]))
    shape = case["shape"]
    unreduced = {"unreduced": set(case["unreduced"])} if case["unreduced"] else {}
    spec = PartitionSpec(*map(entry, case["entries"]), **unreduced)
    sharding = NamedSharding(mesh, spec)
    boxes = {}
    if not case["unreduced"]:
        for device, box in sharding.devices_indices_map(tuple(shape)).items():
            boxes[device.id] = [side.indices(size)[:2] for side, size in zip(box, shape, strict=True)]
    told = {"pieces": boxes, "spec": str(spec), "sdy": attribute(sharding, len(shape)), "gspmd": None}
    # XLA's strings count positions in the sharding's own list of devices; so do Shardy's.
    try:
        hlo = sharding._to_xla_hlo_sharding(len(shape))
    except ValueError:  # of unreduced axes, in older versions
        if not case["unreduced"]:
            raise
    else:
        subgroups = [str(kind).rpartition(".")[2].lower() for kind in hlo.subgroup_types()]
        told |= {
            "gspmd": str(hlo),
            "uniform": hlo.is_replicated() or (hasattr(hlo, "is_unreduced") and hlo.is_unreduced()),
            "tiles": list(hlo.tile_assignment_dimensions()),
            "devices": list(hlo.tile_assignment_devices()),
            "subgroups": ["replicated"] if hlo.replicate_on_last_tile_dim() else subgroups,
        }
    print(json.dumps(told))
