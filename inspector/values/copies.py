"""Copies of one part of an array that devices hold, and that differ."""

from __future__ import annotations

from collections.abc import Sequence

from ..capture.protocol.values import Probe


def copies_differ(probe: Probe) -> bool:
    """True if devices hold different bits of the same part of an argument, an output or a constrained value.

    Inside a shard_map each device has a value of its own, and of an unreduced array a summand.
    """
    if "unreduced" in probe.type or "U:" in probe.type:
        return False
    held: dict[str, str] = {}
    for shard in probe.shards:
        if (shard.part or not probe.path) and held.setdefault(shard.part, shard.digest) != shard.digest:
            return True
    return False


def unequal_copies(probes: Sequence[Probe]) -> tuple[int, ...]:
    """The numbers of those whose copies differ, in their order."""
    return tuple(number for number, probe in enumerate(probes) if copies_differ(probe))
