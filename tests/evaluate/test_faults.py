"""Programs that a compiler gets wrong: a validation and a run have to agree on whether this one does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

POOLED = """
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
x = np.linspace(-4, -2, 16, dtype=np.float32)


@jax.jit
def pooled(x):
    window = dict(window_dimensions=(3,), window_strides=(1,), padding=((1, 1),))
    return lax.reduce_window(x, 0.0, lax.add, **window), lax.reduce_window(x, -jnp.inf, lax.max, **window)


split = pooled(jax.device_put(x, NamedSharding(mesh, P("data"))))
blocks = [(np.abs(a - b) > 1e-5).reshape(4, 4).sum(1) for a, b in zip(split, pooled(x))]
print([[*map(int, each.nonzero()[0]), int(each.max())] for each in blocks])
"""
"""Two windows of one value: a partitioner that takes the halo of one for the other pads the maximum with 0."""


def test_a_run_and_a_validation_agree(tmp_path: Path) -> None:
    script = tmp_path / "pooled.py"
    script.write_text(POOLED)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    wrong = json.loads(run.stdout)
    command = [sys.executable, "-m", "shardscope", "validate", f"{script}:pooled", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    found = json.loads(done.stdout)["validation"]
    assert found["status"] == ("differs" if wrong != [[0], [0]] else "same"), done.stderr
    assert [[*output["devices"], output["elements"]] for output in found["outputs"]] == wrong
