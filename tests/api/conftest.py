"""Programs that use the package, each in a process of its own: this one knows no jax."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sweeps import xla_flags

PROGRAM = """
from functools import partial
import jax, jax.numpy as jnp
from jax import NamedSharding, P, ShapeDtypeStruct, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def matmul(a, b):
    return lax.psum(a @ b, "y")

@jax.jit
def columns_whole(x):
    return jnp.sin(lax.with_sharding_constraint(2 * x, NamedSharding(mesh, P("x", None))))

a, b = jnp.ones((8, 16)), jnp.ones((16, 4))
x = ShapeDtypeStruct((32, 64), jnp.float32, sharding=NamedSharding(mesh, P("x", "y")))
"""

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """Runs `python ARGUMENTS` in a temporary folder that has the program, as `program.py`, with eight devices."""
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        devices = {"XLA_FLAGS": xla_flags(8), "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | devices, check=False
        )

    return run
