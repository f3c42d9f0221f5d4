"""Specs in JAX's messages, one entry alone included."""

from __future__ import annotations

import re

import pytest
from jax.sharding import PartitionSpec as P
from shardscope.inspector.trace_errors.operands import SPEC, spec_of

AXES = (("x",), ("y",), ("x", "y"), ())


@pytest.mark.parametrize("dims", [(), *((each,) for each in AXES), *((each, other) for each in AXES for other in AXES)])
def test_specs_are_read_as_jax_prints_them(dims: tuple[tuple[str, ...], ...]) -> None:
    """Of one entry JAX prints a tuple of one: `P('x',)`."""
    spec = P(*(dim[0] if len(dim) == 1 else dim or None for dim in dims))
    for text in (str(spec).replace("PartitionSpec", "P"), f"P{tuple(spec)!r}"):
        said = re.search(f"spec={SPEC}", f"NamedSharding(spec={text})")
        assert said is not None
        assert spec_of(said[1]) == dims
