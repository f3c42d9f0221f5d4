"""Blocks of an array on devices, and what devices have to receive to have others."""

from __future__ import annotations

import math
from collections.abc import Mapping

Block = tuple[tuple[int, int], ...]
"""The start and the end of a part in each dimension."""

MAX_COMPARED = 1 << 16
"""Pairs of a block before and one after that are compared."""


def received(
    held: Mapping[int, Block] | None, wanted: Mapping[int, Block], itemsize: int
) -> dict[tuple[int | None, int], int]:
    """The bytes that each device gets from each other one at least, by sender and receiver; from None, the host.

    `held` are the blocks of the array on its devices, disjoint or equal; None where it is on the host. A device keeps
    what it has of its block. Holders of equal blocks send in turns.

    Raises:
        ValueError: there are too many blocks to compare.
    """
    if held is None:
        return {(None, device): _volume(block) * itemsize for device, block in wanted.items()}
    holders: dict[Block, list[int]] = {}
    for device, block in held.items():
        holders.setdefault(block, []).append(device)
    if len(holders) * len(wanted) > MAX_COMPARED:
        raise ValueError(f"{len(holders)} blocks and those of {len(wanted)} devices are too many to compare")
    found: dict[tuple[int | None, int], int] = {}
    for turn, (device, block) in enumerate(sorted(wanted.items())):
        for other, senders in holders.items():
            size = _volume(_common(block, other)) * itemsize
            if size and held.get(device) != other:
                pair = senders[turn % len(senders)], device
                found[pair] = found.get(pair, 0) + size
    return found


def by_receiver(pairs: Mapping[tuple[int | None, int], int]) -> dict[int, int]:
    """The bytes that each device gets."""
    found: dict[int, int] = {}
    for (_, device), size in pairs.items():
        found[device] = found.get(device, 0) + size
    return found


def _common(one: Block, other: Block) -> Block:
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))


def _volume(block: Block) -> int:
    return math.prod(max(0, end - start) for start, end in block)
