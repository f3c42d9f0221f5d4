"""Scripts for older versions of JAX: the first remedy runs under plain JAX, with what the installed one has."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from shardscope.inspector.experiments.edited import applied
from shardscope.inspector.ir.program import SourceFile
from shardscope.inspector.trace_errors.remedies import explained_run
from shardscope.inspector.trace_errors.renamed import ADVICE, MODULES, RENAMED
from shardscope.inspector.trace_errors.trying import Command

from tests.sweeps import sampled, xla_flags

PJIT = """
from functools import partial
import jax
import jax.numpy as jnp
from jax.experimental import maps, mesh_utils
from jax.experimental.pjit import pjit, PartitionSpec as P, with_sharding_constraint
from jax.config import config

config.update("jax_enable_x64", False)
mesh = maps.Mesh(mesh_utils.create_device_mesh((2, 4)), ("dp", "mp"))
specs = {"w1": P(None, "mp"), "w2": P("mp", None)}

def init(key: jax.random.KeyArray):
    return {"w1": jax.random.normal(key, (32, 64)), "w2": jax.random.normal(key, (64, 32))}

def loss(params, x):
    h = with_sharding_constraint(jnp.tanh(x @ params["w1"]), P("dp", "mp"))
    return jnp.trapz(jnp.mean((h @ params["w2"]) ** 2, axis=1))

@partial(pjit, in_axis_resources=(specs, P("dp")), out_axis_resources=(specs, None))
def step(params, x):
    value, gradients = jax.value_and_grad(loss)(params, x)
    return jax.tree_map(lambda p, g: p - 0.1 * g, params, gradients), value

with mesh:
    params, value = step(init(jax.random.PRNGKey(0)), jnp.ones((16, 32)))
    print(float(value), jax.tree_leaves(params)[0].device_buffers[0].shape)
"""
SHARD_MAP = """
from jax import lax, numpy as jnp, tree_map
from jax.sharding import Mesh, PartitionSpec, use_mesh
import jax

mesh = jax.make_mesh((8,), ("x",))

def block(w, x):
    total = lax.psum(x @ w, "x")
    return lax.pvary(total, ("x",)) + x[:, :1]

with use_mesh(mesh):
    x = jax.sharding.reshard(jnp.arange(128.0).reshape(8, 16), PartitionSpec("x"))
    f = jax.shard_map(block, mesh, (PartitionSpec(), PartitionSpec("x")), PartitionSpec("x"), check_rep=False)
    print(tree_map(lambda a: a * 2, f(jnp.ones((16, 4)), x)).sum())
"""
PMAP = """
import functools
import jax, numpy as np
from jax import lax
import jax.numpy as jnp

params = jax.device_put_replicated({"w": jnp.ones((4, 4)), "b": jnp.zeros(4)}, jax.local_devices())
batch = np.random.RandomState(0).randn(jax.device_count(), 2, 4).astype(np.float32)
xs = jax.device_put_sharded(list(batch), jax.devices())

@functools.partial(jax.pmap, axis_name="batch")
def update(params, x):
    gradients = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
    return jax.tree_util.tree_multimap(lambda p, g: p - 0.1 * g, params, lax.pmean(gradients, "batch"))

params = update(params, xs)
print(params["w"].device_buffer.device(), jnp.clip(params["b"][0], a_min=-1, a_max=1))
"""
WITHOUT_A_SUCCESSOR = """
import jax
import jax.numpy as jnp
from jax.sharding import PositionalSharding
print(jax.tree_map(jnp.sum, jnp.ones(8)))
"""

IS_WITHOUT_THEM = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="names that this JAX has yet")


def _exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
            for part in parts[count:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return True
    return False


@IS_WITHOUT_THEM
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_are_gone_and_their_successors_are_there() -> None:
    assert [name for name in (*RENAMED, *ADVICE, *MODULES) if _exists(name)] == []
    assert [name for name in RENAMED.values() if not _exists(name)] == []


@IS_WITHOUT_THEM
@pytest.mark.parametrize(
    ("program", "title"),
    sampled(
        [
            (PJIT, "this JAX has no jax.experimental.maps any more"),
            (SHARD_MAP, "this JAX has no jax.tree_map any more"),
            (PMAP, "this JAX has no jax.device_put_replicated any more"),
        ],
        2,
        1,
    ),
)
def test_a_script_is_rewritten_for_this_jax(program: str, title: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(program)
    found = explained_run(Command(str(script), devices=8))
    assert found is not None
    assert found.title == title
    assert found.fixes[0].helps
    text = applied(SourceFile(str(script), script.read_bytes()), list(found.fixes[0].edits))
    assert text is not None
    script.write_bytes(text)
    flags = xla_flags(8)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    ended = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]


@pytest.mark.once
@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="a name that this JAX has yet")
def test_what_has_no_successor_is_an_idea(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_A_SUCCESSOR)
    found = explained_run(Command(str(script), devices=8))
    assert found is not None
    assert found.title == "this JAX has no jax.sharding.PositionalSharding any more"
    assert not any(fix.helps for fix in found.fixes)
    assert "jax.NamedSharding" in found.fixes[0].title
