"""Devices at coordinates of some axes: the first of those that have these, where others are left to the compiler."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from jax.sharding import AbstractMesh
from shardscope.inspector.capture.worker.probes.sites import Mapped, Site, device_ids

AXES = ("x", "y", "z")
SIZES = (2, 3, 2)
ORDER = np.random.default_rng(0).permutation(12)


@pytest.mark.parametrize("named", [(), ("x",), ("y",), ("z",), ("x", "z"), ("z", "y"), AXES])
def test_the_first_of_those_that_share_coordinates(named: tuple[str, ...]) -> None:
    """By numpy's own slices of the array of devices."""
    ids = ORDER.reshape(SIZES)
    site = Site((), "before", 0, (Mapped(named, SIZES, AbstractMesh(SIZES, AXES), True),), "f32[]")
    for place in product(*(range(dict(zip(AXES, SIZES, strict=True))[axis]) for axis in named)):
        coordinates = dict(zip(named, place, strict=True))
        shared = ids[tuple(coordinates.get(axis, slice(None)) for axis in AXES)]
        assert device_ids(site, coordinates, ORDER.tolist()) == np.ravel(shared)[0]
