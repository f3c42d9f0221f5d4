"""Blocks of a dimension that an operation takes apart: beside numpy's, of the array that a reshape makes of it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from shardscope.inspector.shardings.sharded_dimensions import DimensionUse

SIZES = [sizes for rank in range(1, 4) for sizes in product((1, 2, 3, 4, 6), repeat=rank)]


def blocks(sizes: tuple[int, ...], devices: int) -> list[np.ndarray[Any, Any]]:
    """The places that the elements of each device have in the reshaped array."""
    places = np.indices(sizes).reshape(len(sizes), -1)
    return np.split(places, devices, axis=1)


def is_box(places: np.ndarray[Any, Any]) -> bool:
    return math.prod(len(set(along)) for along in places.tolist()) == places.shape[1]


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 6, 8, 12])
def test_blocks_that_stay_blocks(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use: Any = DimensionUse(None, 0)  # type: ignore[arg-type]
    tried = 0
    for sizes in SIZES:
        monkeypatch.setattr(DimensionUse, "_parts", lambda self, cut, sizes=sizes: (devices, list(sizes)))
        if math.prod(sizes) % devices:
            continue
        tried += 1
        held = blocks(sizes, devices)
        boxes = all(map(is_box, held))
        # Blocks of the major part alone: all of the others is on each device.
        of_major = boxes and all(len(set(places[0].tolist())) == sizes[0] // devices for places in held)
        assert use.is_kept(None) == (sizes[0] % devices == 0 and of_major)
        assert use.could_keep(None) == (len(sizes) > 1 and boxes)
    assert tried > 4


def test_of_what_is_merged_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DimensionUse, "_parts", lambda self, cut: None)
    use: Any = DimensionUse(None, 0)  # type: ignore[arg-type]
    assert not use.is_kept(None)
    assert not use.could_keep(None)
