"""What XLA's own parser makes of sharding strings; a child process of the tests, because it may abort.

    python cpp_shardings.py < TEXTS (one a line, as JSON)

For each text two lines of JSON go to standard output: {"started"}, then {"error"}, or what the sharding is in the
syntax of version 2: {"kind", "tiles", "devices", "subgroups"}, or {"elements"} for a tuple.
"""

import json
import sys

from jaxlib import _hlo as xla


def described(sharding):
    if elements := sharding.tuple_elements():
        return {"elements": list(map(described, elements))}
    for kind in ("replicated", "manual", "unreduced", "unknown"):
        if getattr(sharding, f"is_{kind}")():
            return {"kind": kind}
    subgroups = [str(kind).rpartition(".")[2].lower() for kind in sharding.subgroup_types()]
    return {
        "kind": "maximal" if sharding.is_maximal() else "tiled",
        "tiles": list(sharding.tile_assignment_dimensions()),
        "devices": list(sharding.tile_assignment_devices()),
        "subgroups": ["replicated"] if sharding.replicate_on_last_tile_dim() else subgroups,
    }


for line in sys.stdin:
    print(json.dumps({"started": True}), flush=True)
    text = json.loads(line)
    try:
        sharding = xla.HloSharding.from_string(text)
        answer = described(sharding.v3_to_v2_sharding() if "mesh" in text or "single_device" in text else sharding)
    except Exception as error:
        answer = {"error": repr(error)[:300]}
    print(json.dumps(answer), flush=True)
