"""Reduce-scatters that a SparseCore runs, in computations called asynchronously, against those that the core runs."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report

pytestmark = [
    pytest.mark.skipif(find_spec("libtpu") is None, reason="needs libtpu"),
    pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="older libtpu has no such options"),
]

PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
specs = {"up": P("data", None), "down": P(None, "data"), "out": P("data", None)}
shardings = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
shapes = {"up": (1024, 4096), "down": (4096, 1024), "out": (1024, 512)}
arrays = {name: jax.ShapeDtypeStruct(shapes[name], "float32", sharding=shardings[name]) for name in specs}
batch = [jax.ShapeDtypeStruct((256, n), "float32", sharding=NamedSharding(mesh, P("data"))) for n in (1024, 512)]

def loss(params, x, y):
    hidden = x + jax.nn.gelu(x @ params["up"]) @ params["down"]
    return jnp.mean((hidden @ params["out"] - y) ** 2)

def update(params, moments, x, y):
    grads = jax.grad(loss)(params, x, y)
    moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, grads)
    return jax.tree.map(lambda p, m: p - 0.01 * m, params, moments), moments

offload = "xla_tpu_enable_sparse_core_collective_offload_"
by_core = jax.jit(update)
by_sparse_core = jax.jit(
    update, compiler_options={f"{offload}reduce_scatter": True, f"{offload}nd_reduce_scatter": True}
)
by_core_inputs = by_sparse_core_inputs = (arrays, arrays, *batch)
"""


def test_what_they_are_there_for_does_not_depend_on_who_runs_them(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM)
    found = {}
    for function, target in (("by_core", "tpu:v5e:2x4"), ("by_sparse_core", "tpu:v5p:2x2x2")):
        report = inspect(last_capture(Request(f"{tmp_path / 'script.py'}:{function}", target=target)))
        found[function] = scatters(report)
        assert not report.uncounted
        assert report.cost is not None
        assert not report.cost.unknown
    assert found["by_sparse_core"] == found["by_core"]
    assert set(found["by_core"]) == {"gradient sync", "tensor parallelism"}


def scatters(report: Report) -> Counter[str]:
    """How many results of reduce-scatters each strategy has: several may be combined in one."""
    return Counter(
        {
            total.strategy: sum(len(each.result_types) for each in total.collectives)
            for total in report.communication
            if total.kind == "reduce-scatter"
        }
    )
