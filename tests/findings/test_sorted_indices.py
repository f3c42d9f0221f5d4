"""SS05 of sorts: JAX types an operand that is no key as it was, and devices with other keys permute it otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect

SCRIPT = """
import jax, jax.numpy as jnp
from jax import P
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def inside(a):
    return a[jnp.argsort(a)]

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
def leaving(a):
    return jnp.argsort(a)

inside_inputs = leaving_inputs = (jnp.sin(jnp.arange(32.0)),)
"""


@pytest.mark.parametrize(("function", "severity"), [("inside", "info"), ("leaving", "error")])
def test_an_error_is_what_leaves(function: str, severity: str, tmp_path: Path) -> None:
    script = tmp_path / "sorts.py"
    script.write_text(SCRIPT)
    captured = last_capture(Request(f"{script}:{function}", probe="none"))
    if captured.failure is not None:
        assert function == "leaving"  # a JAX that types it as varying
        assert "vary" in captured.failure.message
        return
    found = [each for each in inspect(captured).findings if each.rule == "SS05"]
    assert {each.severity for each in found} <= {severity}
    assert found or function == "inside"
    assert all("predicate" not in each.message for each in found)
