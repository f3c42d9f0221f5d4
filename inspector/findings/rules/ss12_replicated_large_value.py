"""SS12: a large value of which devices hold the same copy."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....parsers.mlir.sdy import DimensionSharding
from ....parsers.sharding_syntax.mesh import AxisRef
from ...ir.array_sharding import ArraySharding
from ...report import Finding, FindingPlace, Fix, Report, ShardedValue
from ...units import format_bytes
from ..fixes.specs import with_result_specs
from ..rule import Rule, finding

MIN_COPIED_BYTES = 64 * 2**20
"""Bytes of a device that lie elsewhere as well, from which on a value is large."""

MIN_MEMORY_SHARE = 1 / 128
"""Or, where that is more, which part of the memory of the target's devices."""

ROLES = ("argument", "output")

Cut = tuple[AxisRef, int, ArraySharding]
"""An axis that might cut a value further, the dimension that it divides, and the sharding with it."""


def check(report: Report) -> Iterator[Finding]:
    """Each large argument and output that some axis of the mesh could cut and does not, worst first."""
    capacity = None if report.peak is None else report.peak.capacity
    least = report.thresholds.get(RULE.id, max(MIN_COPIED_BYTES, (capacity or 0) * MIN_MEMORY_SHARE))
    large = [v for v in report.shardings if v.role in ROLES and (v.replicated_bytes or 0) >= least and not v.manual]
    reported = set()
    for value in sorted(large, key=lambda v: -(v.replicated_bytes or 0)):
        cuts = tuple(_cuts(value))
        twin = (value.type, value.spec, value.leaf)
        if cuts and twin not in reported:  # what is returned as it came is told once
            reported.add(twin)
            yield _found(report, value, cuts, capacity)


def _cuts(value: ShardedValue) -> Iterator[Cut]:
    sharding, shape = value.sharding, value.type.shape
    if sharding is None or shape is None:
        return
    used = {axis.name for axis in (*sharding.sharded, *sharding.unreduced, *sharding.manual)}
    for name, size in sharding.mesh.axes:
        local = sharding.local_shape(shape)
        dims = [dim for dim in range(len(shape)) if local[dim] % size == 0 and local[dim] >= size]
        if name not in used and size > 1 and dims:
            # The dimension that is cut least keeps the parts large.
            dim = max(dims, key=lambda d: (not sharding.dims[d].axes, local[d]))
            cut = list(sharding.dims)
            cut[dim] = DimensionSharding((*cut[dim].axes, AxisRef(name)))
            yield AxisRef(name), dim, ArraySharding(sharding.mesh, tuple(cut), (), sharding.unreduced, sharding.manual)


def _found(report: Report, value: ShardedValue, cuts: tuple[Cut, ...], capacity: int | None) -> Finding:
    assert value.sharding is not None
    copies, replicated = value.sharding.copies, value.replicated_bytes or 0
    size = replicated * copies // (copies - 1)
    sizes = dict(value.sharding.mesh.axes)
    evidence = [("copies", f"{format_bytes(replicated)} of {value.type} on each device")]
    evidence += [("sharding", f"{value.spec}: {value.local_type} on each device, {format_bytes(size)}")]
    for axis, dim, _ in cuts:
        parts, saved = sizes[axis.name], format_bytes(size - size // sizes[axis.name])
        evidence.append((f"along {axis.name}", f"dimension {dim} in {parts} parts saves {saved}"))
    if capacity is not None:
        evidence.append(("of a device", f"{100 * size / capacity:.1f}% of {format_bytes(capacity)}"))
    best = max(cuts, key=lambda cut: sizes[cut[0].name])
    names = tuple(axis.name for axis, _, _ in cuts)
    ways = math.prod(sizes[name] for name in names)
    fix = f"shard {value.name} as {best[2]}, and gather it where it is used"
    edits = with_result_specs(report, {value.name: best[2]}) if value.role == "output" else ()
    return finding(
        RULE,
        FindingPlace(value.name, value.source, value.stage, value.span),
        f"{value.name} is replicated on {copies} devices: {', '.join(names)} could shard it {ways} ways",
        confidence="possible",
        subject=value.name,
        axes=names,
        evidence=evidence,
        fixes=(Fix(f"{fix}; keep the copies if memory allows and it is used throughout", edits),),
    )


RULE = Rule(
    id="SS12",
    slug="replicated-large-value",
    severity="warning",
    finds="A large argument or output that is replicated over a mesh axis that could shard it.",
    why="Each device stores a copy. Often a spec was forgotten, for optimizer state or an embedding.",
    proof="The sharding after propagation. Large means copies of 64 MiB, or of 1/128 of a device's memory. `possible`,"
    " because copies can be intended: data parallelism consists of them.",
    faulty="table = jax.device_put(table, NamedSharding(mesh, P()))  # f32[32768,1024] on each device",
    repaired='table = jax.device_put(table, NamedSharding(mesh, P("x")))',
    check=check,
    saves="memory",
    tries="out_shardings of a result, or a constraint where it is returned, by its path; an argument is often made"
    " outside of the script",
    threshold=MIN_COPIED_BYTES,
    threshold_is="bytes per device in copies",
)
