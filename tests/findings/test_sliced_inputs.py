"""Inputs that a shard_map takes whole, and of which each device slices its own block: they are taken in blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected

from tests.findings.trying import verified
from tests.sweeps import sampled

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("e",), axis_types=(jax.sharding.AxisType.Auto,))
mapped = partial(jax.shard_map, mesh=mesh, out_specs=P("e"))

def part(x, up, down):
    own = lax.axis_index("e") * 2
    up = lax.dynamic_slice_in_dim(up, own, 2)
    return jnp.tanh(x @ up) @ lax.dynamic_slice_in_dim(down, own, 2, axis=0)

@jax.jit
def given(x, up, down):
    return jax.shard_map(part, mesh=mesh, in_specs=(P("e"), P(), P()), out_specs=P("e"))(x, up, down)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("e"), P(), P()), out_specs=P("e"))
def decorated(x, up, down):
    own = lax.axis_index("e") * 2
    columns = lax.dynamic_slice_in_dim(down, own, 2, 0)
    return jnp.tanh(x @ lax.dynamic_slice_in_dim(up, own, axis=0, slice_size=2)) @ columns

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("e"), P(), P(None)), out_specs=P("e"))
def otherwise(x, up, down):
    own = lax.axis_index("e") * 2
    return jnp.tanh(x @ lax.dynamic_slice_in_dim(up, own, 2)) @ lax.dynamic_slice_in_dim(down[::-1], own, 2)

def sharded(shape, key):
    return jax.device_put(jax.random.normal(jax.random.key(key), shape), NamedSharding(mesh, P("e")))

def given_inputs():
    return sharded((8, 16, 32), 0), sharded((8, 32, 64), 1), sharded((8, 64, 32), 2)

decorated_inputs = otherwise_inputs = given_inputs
"""


@pytest.mark.parametrize(("function", "left"), sampled([("given", 0), ("decorated", 0), ("otherwise", 1)], 2, 0))
def test_only_blocks_are_taken(function: str, left: int, tmp_path: Path) -> None:
    script = tmp_path / "sliced.py"
    script.write_text(SCRIPT)
    request = Request(f"{script}:{function}", probe="none", fingerprints=True)
    report = verified(suspected(last_capture(request)), request, suspected)
    fixes = [fix for found in report.findings if found.rule == "SS02" for fix in found.fixes if fix.helps]
    assert len(fixes) >= 1
    done = fixes[0].experiment
    assert done is not None
    assert done.values == "equal"
    assert dict(done.before.collectives) == {"all-gather e": 2}
    assert dict(done.after.collectives) == ({"all-gather e": left} if left else {})
