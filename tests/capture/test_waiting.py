"""Programs whose devices wait for each other forever, and programs that only take their time."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import WAITS
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture

HEAD = """
import time
import jax
from jax import lax
from jax.sharding import PartitionSpec as P

mesh = jax.sharding.Mesh(__import__("numpy").array(jax.devices()[:4]), ("x",))
"""
PARTING = """
def body(v):
    return lax.cond(
        lax.axis_index("x") < 2,
        lambda v: lax.psum(v, "x"),
        lambda v: lax.all_gather(v, "x")[0],
        v,
    )

step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
print(step(jax.numpy.arange(8.0)))
"""
SLOW = """
def late(v):
    time.sleep(4)
    return v

def body(v):
    return lax.psum(jax.pure_callback(late, jax.ShapeDtypeStruct(v.shape, v.dtype), v), "x")

time.sleep(4)
step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False))
print(step(jax.numpy.arange(8.0)))
"""


@pytest.mark.parametrize("name", ["", ":step"])
def test_the_line_on_which_each_device_waits_is_named(name: str, tmp_path: Path) -> None:
    script = tmp_path / "parting.py"
    script.write_text(HEAD + PARTING)
    lines = script.read_text().splitlines()
    found = last_capture(Request(f"{script}{name}"))
    assert found.failure is not None
    assert found.failure.type == WAITS
    for devices, called in (("0–1 in all-reduce", "lax.psum"), ("2–3 in all-gather", "lax.all_gather")):
        (line,) = (number for number, text in enumerate(lines, 1) if called in text)
        assert f"{devices} at parting.py:{line}" in found.failure.message
    assert [frame.line for frame in found.failure.stack] == [len(lines)]
    assert found.stage("hlo") is not None


@pytest.mark.once
def test_a_callback_that_takes_its_time_is_waited_for(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(HEAD + SLOW)
    found = last_capture(Request(str(script), live=False))
    assert found.failure is None
    assert found.complete
