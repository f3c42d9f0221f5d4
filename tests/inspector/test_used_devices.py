"""The headline's devices: those that the compiled program runs on, of all that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.overview import subject_text

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def on(count):
    mesh = Mesh(np.array(jax.devices()[:count]), ("x",))
    x = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=NamedSharding(mesh, P("x")))
    print("devices:", len(fn.lower(x).compile().input_shardings[0][0].device_set), "of", jax.device_count())
    return (x,)

@jax.jit
def fn(x):
    return x.sum()

def some():
    return on(4)

def all_of_them():
    return on(8)
"""


@pytest.mark.parametrize(("inputs", "said"), [("some", "cpu × 4 of 8"), ("all_of_them", "cpu × 8")])
def test_the_headline_has_the_devices_that_are_used(tmp_path: Path, inputs: str, said: str) -> None:
    """JAX's compiled object has as many, as the script prints."""
    (tmp_path / "script.py").write_text(SCRIPT)
    final = last_capture(Request(f"{tmp_path / 'script.py'}:fn", inputs=inputs, live=False, devices=8))
    assert f"devices: {said.split()[2]} of 8" in final.stdout
    assert f" · {said} · " in subject_text(inspect(final))
