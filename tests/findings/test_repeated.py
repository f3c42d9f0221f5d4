"""Products that devices compute from the same values."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.cost.products import products_of
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Finding
from shardscope.inspector.report.edits import diff_of
from shardscope.parsers.source import Source

from tests.findings.test_variants import captured, libtpu, pytestmark  # noqa: F401
from tests.findings.trying import tried_in, verified


def findings(function: str, target: str = "cpu") -> list[Finding]:
    return [each for each in inspect(captured("shares", function, target=target)).findings if each.rule == "SS29"]


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5p:2x2x2", marks=libtpu)])
def test_what_counts_is_found(target: str) -> None:
    (found,) = findings("large", target)
    assert [axis.name for axis in found.axes] == ["y"]
    # One of two products is done twice, on rows twice as many: half of two thirds.
    assert "33%" in found.message
    assert found.place.source.function == "large"


WORK = """\
HloModule jit_f, num_partitions=4

body (s: (f32[8,4], f32[4,4], pred[])) -> (f32[8,4], f32[4,4], pred[]) {
  s = (f32[8,4], f32[4,4], pred[]) parameter(0)
  a = f32[8,4] get-tuple-element(s), index=0
  w = f32[4,4] get-tuple-element(s), index=1
  more = pred[] get-tuple-element(s), index=2
  d = f32[8,4] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[8,4], f32[4,4], pred[]) tuple(d, w, more)
}

condition (s: (f32[8,4], f32[4,4], pred[])) -> pred[] {
  s = (f32[8,4], f32[4,4], pred[]) parameter(0)
  ROOT more = pred[] get-tuple-element(s), index=2
}

ENTRY main (a: f32[8,4], w: f32[4,4], more: pred[]) -> (f32[8,4], f32[4,4], pred[]) {
  a = f32[8,4] parameter(0)
  w = f32[4,4] parameter(1)
  more = pred[] parameter(2)
  d = f32[8,4] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = (f32[8,4], f32[4,4], pred[]) tuple(d, w, more)
  ROOT r = (f32[8,4], f32[4,4], pred[]) while(t), condition=condition, body=body
}
"""


def test_what_runs_an_unknown_number_of_times_counts_once() -> None:
    """Data decide how often the loop runs: one run of it is as much as the product before it."""
    stage = Stage("hlo-spmd", "hlo", Source("m.hlo", WORK.encode()))
    work = [(each.flops, each.runs) for each in products_of(inspect(Capture(stages=(stage,))).program)]
    assert work == [(2 * 8 * 4 * 4, 1)] * 2


def test_small_products_are_not_said() -> None:
    assert findings("small") == []


WHOLE_BATCH = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def loss(w, a):
    return jnp.mean(jnp.tanh(a @ w) ** 2)

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P()), out_specs=P(), check_vma=False)
def step(w, a):
    return w - 0.1 * lax.pmean(jax.grad(loss)(w, a), "x")

step_inputs = (jnp.sin(jnp.arange(65536.0)).reshape(256, 256), jnp.cos(jnp.arange(32768.0)).reshape(128, 256))
"""


@pytest.mark.once
def test_a_batch_that_every_device_computes_is_sharded_by_its_in_spec(tmp_path: Path) -> None:
    """With the same numbers: of equal parts, the mean of means is the mean."""
    script = tmp_path / "script.py"
    script.write_text(WHOLE_BATCH)
    request = Request(f"{script}:step", probe="none")
    report = verified(inspect(last_capture(request)), request, inspect)
    (found,) = (each for each in report.findings if each.rule == "SS29")
    assert found.experiment is not None
    assert (found.experiment.helps, found.experiment.values) == (True, "close"), found.experiment.why
    assert "+@jax.shard_map(mesh=mesh, in_specs=(P(), P('x')), out_specs=P(), check_vma=False)" in diff_of(
        report.program, found.proposal
    )


RESHARDED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P, reshard
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
WHOLE = P(None, None, None)

def mixed(w, z):
    scores = jax.nn.softmax(jnp.einsum("rqc,rkc->rqk", z @ w, z))
    return jnp.einsum("rqk,rkc->rqc", scores, z)

@jax.jit
def step(w, z):
    columns = jnp.swapaxes(reshard(z, WHOLE), 0, 1)
    return z + reshard(jnp.swapaxes(mixed(w, columns), 0, 1), P("x", None, None))

if __name__ == "__main__":
    with jax.set_mesh(mesh):
        z = jax.random.normal(jax.random.key(0), (64, 64, 32))
        step(jnp.eye(32), jax.device_put(z, P("x", None, None)))
"""


def test_what_is_made_whole_by_types_is_given_to_another_dimension(tmp_path: Path) -> None:
    """Without the reshard the types do not fit, so that leaving it out is no change."""
    fix = tried_in(tmp_path, RESHARDED, "SS29").fixes[0]
    assert (fix.title, fix.helps) == ("reshard z to P(None, 'x') instead of WHOLE", True)
    assert fix.experiment is not None
    before, after = fix.experiment.before, fix.experiment.after
    assert before.flops is not None
    assert after.flops is not None
    assert after.flops * 4 <= before.flops * 1.01
    assert fix.experiment.values == "equal"
