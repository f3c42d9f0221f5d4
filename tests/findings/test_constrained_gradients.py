"""Gradients that are returned replicated: constrained to their parameters' shardings, in trees no literal can spell."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report.edits import diff_of

from tests.findings.test_variants import libtpu
from tests.findings.trying import verified

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older partitioners choose other strategies")

SCRIPT = """
import dataclasses
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))

@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    layers: list
    out: jax.Array

def loss(model, x):
    for layer in model.layers:
        whole = jax.lax.with_sharding_constraint(layer["w"], NamedSharding(mesh, P()))
        x = jnp.tanh(x @ whole)
    whole = jax.lax.with_sharding_constraint(model.out, NamedSharding(mesh, P()))
    return jnp.mean((x @ whole) ** 2)

@jax.jit
def gradients(model, x):
    grads = jax.grad(loss)(model, x)
    return grads

def placed(shape, spec):
    return jax.device_put(jnp.sin(jnp.arange(float(shape[0] * shape[1]))).reshape(shape) / 8, NamedSharding(mesh, spec))

model = Model([{"w": placed((256, 256), P("data"))} for _ in range(2)], placed((256, 128), P(None, "data")))
gradients_inputs = (model, placed((64, 256), P("data")))
"""


@libtpu
def test_gradients_are_constrained_and_reduce_scatters_form(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    request = Request(f"{script}:gradients", target="tpu:v5p:2x2x1", probe="none")
    report = verified(inspect(last_capture(request)), request, inspect)
    (found,) = (each for each in report.findings if each.rule == "SS01")
    assert "returned replicated" in found.message
    assert found.experiment is not None
    assert (found.experiment.state, found.experiment.why) == ("not helping", "the step is slower on the target")
    (added,) = (line for line in diff_of(report.program, found.proposal) if line.startswith("+ "))
    assert added.startswith("+    grads = jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, ")
    assert (
        dict(found.experiment.before.collectives).get("reduce-scatter data", 0)
        < dict(found.experiment.after.collectives)["reduce-scatter data"]
    )
