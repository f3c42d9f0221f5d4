"""Single devices' values of an array that is spread over devices."""

from __future__ import annotations

from typing import Any

import numpy as np


class DeviceBlocks:
    """Reads what lies at an index of the leading dimensions from the shard that holds it.

    The array need not be put together on the host for that, which for large ones takes most of the time; only where the
    other dimensions are cut too it is.
    """

    def __init__(self, array: Any, leading: int) -> None:
        shards = array.addressable_shards
        self._extent = shards[0].data.shape
        is_apart = self._extent[leading:] == array.shape[leading:]
        self._whole = None if is_apart else np.asarray(array)
        self._shards = {tuple(each.start or 0 for each in shard.index[:leading]): shard for shard in shards}
        self._read: dict[tuple[int, ...], Any] = {}

    def __getitem__(self, at: tuple[int, ...]) -> Any:
        if self._whole is not None:
            return self._whole[at]
        start = tuple(place // extent * extent for place, extent in zip(at, self._extent, strict=False))
        if start not in self._read:
            self._read[start] = np.asarray(self._shards[start].data)
        return self._read[start][tuple(place - begin for place, begin in zip(at, start, strict=True))]
