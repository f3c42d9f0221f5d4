"""SS17: mesh axes that lie across nodes or slices, where another order of them would keep more traffic inside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

from ....parsers.sharding_syntax.mesh import AxisRef, MeshSyntax, join_axes
from ...cost.collectives import estimate
from ...cost.places import Machine, machine_of
from ...report import Collective, Finding, Report
from ...report.spelled import mesh_of
from ...units import format_bytes, format_seconds
from ..compiled import in_hlo, place_in_hlo
from ..rule import Rule, Saving, advice, finding

MAX_AXES = 5
"""Maximum number of mesh axes whose orders are all tried."""

MIN_SAVED_SHARE = 0.1
"""The part of the time of all communication that another order must save."""


def check(report: Report) -> Iterator[Finding]:
    """The collectives over the network, if the model knows an order of the mesh's axes that is much faster."""
    machine = machine_of(report.program)
    found = [c for c in in_hlo(report) if c.estimate is not None and c.executions]
    slow = [c for c in found if c.estimate is not None and c.estimate.link == "network"]
    meshes = [
        mesh
        for mesh in {mesh_of(each, report): None for each in found}
        if mesh.size == report.partitions and 1 < len(mesh.axes) <= MAX_AXES
    ]
    if machine is None or not slow or len(meshes) != 1 or len(machine.devices) != report.partitions:
        return
    now = _total(found)
    best, then = min(
        (
            (order, _total(_placed(found, meshes[0], order, machine)))
            for order in permutations(range(len(meshes[0].axes)))
        ),
        key=lambda each: each[1],
    )
    if now - then > report.thresholds.get(RULE.id, MIN_SAVED_SHARE) * now:
        island = "slice" if machine.chip.platform == "tpu" else "node"
        yield _found(meshes[0], slow, best, (now, then), island)


def _placed(
    collectives: Sequence[Collective], mesh: MeshSyntax, order: tuple[int, ...], machine: Machine
) -> list[Collective]:
    """The collectives with the times that they have when the axes are laid out, slowest link first, in that order."""
    devices = sorted(machine.devices, key=lambda device: (device.slice, device.process, device.id))
    at = list(product(*(range(size) for _, size in mesh.axes)))
    positions = sorted(range(mesh.size), key=lambda each: [at[each][axis] for axis in order])
    partitions, placed = mesh.device_ids or range(mesh.size), list(machine.devices)
    for device, position in zip(devices, positions, strict=True):
        placed[partitions[position]] = device
    other = replace(machine, devices=tuple(placed))
    return [replace(each, estimate=estimate(each, other)) for each in collectives]


def _total(collectives: Sequence[Collective]) -> float:
    return math.fsum(math.inf if (seconds := each.step_seconds) is None else seconds for each in collectives)


def _found(
    mesh: MeshSyntax, slow: list[Collective], order: tuple[int, ...], times: tuple[float, float], island: str
) -> Finding:
    now, then = times
    sent: dict[tuple[AxisRef, ...], int] = {}
    for each in slow:
        sent[each.axes or ()] = sent.get(each.axes or (), 0) + (each.step_bytes or 0)
    worst = max(slow, key=lambda each: each.step_seconds or 0)
    names, sizes = [mesh.axes[axis][0] for axis in order], [mesh.axes[axis][1] for axis in order]
    axes = tuple(dict.fromkeys(axis.name for each in slow for axis in each.axes or ()))
    fast = [name for name in names if name not in axes]
    return finding(
        RULE,
        place_in_hlo(worst),
        f"{', '.join(axes) or 'groups'} across {island}s: {format_seconds(now)} on the network,"
        f" {format_seconds(then)} with {names[-1]} on the fast links",
        confidence="likely",
        axes=axes,
        evidence=(
            *(
                (f"over {join_axes(each) or '?'}", f"{format_bytes(count)} per device through the network")
                for each, count in sorted(sent.items(), key=lambda item: -item[1])
            ),
            (f"inside a {island}", ", ".join(fast) or "none"),
        ),
        fixes=advice(
            f"order the mesh axes {', '.join(names)}, the last one on the fast links:"
            f" jax.make_mesh({tuple(sizes)}, {tuple(names)}); specs stay unchanged"
        ),
        saves=Saving(None, now - then),
    )


RULE = Rule(
    id="SS17",
    slug="slow-link-collective",
    severity="warning",
    finds="Collectives between nodes or slices that would stay inside them with another order of the mesh axes.",
    why="The network between nodes is many times slower than the links inside. The devices along the last mesh axes"
    " are closest to each other: the axes that communicate most belong there.",
    proof="The cost model, for the program as it is and for every order of the axes: reported if the best order saves"
    " more than a tenth of all communication time.",
    faulty='mesh = jax.make_mesh((4, 8), ("data", "model"))  # four nodes of 8, and gradients are most of what is sent',
    repaired='mesh = jax.make_mesh((8, 4), ("model", "data"))',
    check=check,
    by_hand="other programs may depend on the mesh; `shardscope diff --with mesh=…` tries another one",
    threshold=MIN_SAVED_SHARE,
    threshold_is="share of all communication time that another order saves",
)
