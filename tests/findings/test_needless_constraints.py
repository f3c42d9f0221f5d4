"""Constraints that cost communication or compute: found as a fix, and tried against the program without them."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.experiments.lab import tried
from shardscope.inspector.experiments.measured import measured
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Report
from shardscope.inspector.report.policy import EVERYTHING, Policy

from tests.findings.trying import verified

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older partitioners choose other strategies")

PROGRAM = """\
from functools import partial
import jax, jax.numpy as jnp
from jax.lax import with_sharding_constraint
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
batch = NamedSharding(mesh, P("data", "model"))
parameters = NamedSharding(mesh, P("model", "data"))

def layer(x, w, v, spec):
    h = jnp.tanh(x @ w.T)
    if spec is not None:
        h = with_sharding_constraint(h, NamedSharding(mesh, spec))
    return with_sharding_constraint(jnp.tanh(h @ v), batch)

@jax.jit
def swapped(x, w, v):
    return layer(x, w, v, P("model", "data"))

@jax.jit
def repaired(x, w, v):
    return layer(x, w, v, None)

@jax.jit
def replicated(x, w, v):
    h = with_sharding_constraint(jnp.tanh(x @ w.T), NamedSharding(mesh, P()))
    return jnp.tanh(h @ v)

@jax.jit
def step(x, w, v):
    grad = jax.grad(lambda w: (jnp.tanh(x @ w.T) ** 2).sum())(w)
    grad = with_sharding_constraint(grad, NamedSharding(mesh, P()))
    return with_sharding_constraint(w - 0.1 * grad, parameters)

def arrays(like):
    x, w, v = (jnp.ones(shape, jnp.float32) for shape in ((128, 256), (512, 256), (512, 256)))
    return jax.device_put(x, batch), jax.device_put(w, parameters), jax.device_put(v, like)

@partial(jax.jit, out_shardings=NamedSharding(mesh, P()))
def whole(x, w, v):
    return x * 2

whole_inputs = swapped_inputs = repaired_inputs = step_inputs = arrays(parameters)
replicated_inputs = arrays(NamedSharding(mesh, P()))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("constraints") / "script.py"
    path.write_text(PROGRAM)
    return path


def request_of(script: Path, function: str, *, live: bool = False) -> Request:
    return Request(f"{script}:{function}", live=live, probe="none", fingerprints=True)


def report_of(script: Path, function: str) -> Report:
    last = last_capture(request_of(script, function))
    assert last.complete, last.failure
    return inspect(last)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


@pytest.mark.once
def test_a_note_whose_fix_saves_something_is_a_warning(script: Path) -> None:
    report = report_of(script, "swapped")
    assert {each.severity for each in report.findings if each.rule == "SS23"} == {"info"}
    searched = tried(report, request_of(script, "swapped"), seconds=8)
    found, *others = [each for each in searched.findings if each.rule == "SS23"]
    assert found.severity == "warning"
    assert all(each.fixes[0].helps for each in others if each.severity == "warning")
    assert found.experiment is not None
    assert found.experiment.helps
    helping = [fix.experiment.after for fix in found.fixes if fix.helps and fix.experiment and fix.experiment.after]
    repaired = measured(report_of(script, "repaired"))
    assert helping[0].bytes <= repaired.bytes
    assert found.saved_bytes == found.experiment.bytes_saved
    assert (found.saved_bytes or 0) > 0


def test_a_constraint_that_repeats_compute(script: Path) -> None:
    (found,) = (each for each in report_of(script, "replicated").findings if each.rule == "SS29")
    line = line_of("h = with_sharding_constraint(jnp.tanh")
    assert line in {place.source.line for place in found.related}
    assert {edit.line for edit in found.fixes[0].edits} == {line}


def test_gradients_that_a_constraint_replicates(script: Path) -> None:
    (found,) = (each for each in report_of(script, "step").findings if each.rule == "SS01")
    line = line_of("grad = with_sharding_constraint")
    assert {edit.line for edit in found.fixes[0].edits} == {line}


@pytest.mark.once
def test_a_result_that_is_replicated_is_sharded_by_out_shardings(script: Path) -> None:
    def small(capture: Capture) -> Report:
        return inspect(capture, Policy(rules=frozenset({"SS12"}), thresholds={"SS12": 1 << 16}))

    request = request_of(script, "whole")
    (found,) = verified(small(last_capture(request)), request, small).findings
    assert found.place.what == "result"
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment.why
    assert (found.experiment.after.bytes or 0) < (found.experiment.before.bytes or 0)


UNREDUCED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)

def step(a, b):
    c = jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))
    return jax.sharding.reshard(c, P("x", None))

def like(*shape, spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

inputs = (like(8, 8, spec=P(None, "x")), like(8, 16, spec=P("x", None)))
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="jax.numpy.einsum takes no unreduced axes before")
def test_a_request_for_partial_sums_is_not_one_for_the_whole(tmp_path: Path) -> None:
    """A product whose sum is left to the reshard is no constraint that keeps a reduce-scatter from forming."""
    (tmp_path / "script.py").write_text(UNREDUCED)
    final = last_capture(Request(f"{tmp_path / 'script.py'}:step", live=False))
    assert final.failure is None, final.failure
    (found,) = (each for each in inspect(final).findings if each.rule == "SS01")
    assert [fix.title for fix in found.fixes] == []


VOCABULARY = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

@jax.jit
def embedding():
    table = jnp.arange(17 * 1024.0).reshape(17, 1024)
    return jax.lax.with_sharding_constraint(table, NamedSharding(mesh, P("data", None)))

embedding()
"""


def test_a_constraint_that_does_not_divide_gets_another_dimension_as_its_fix(tmp_path: Path) -> None:
    """The finding about it stands for both: what is requested does not divide, and what it costs."""
    script = tmp_path / "vocabulary.py"
    script.write_text(VOCABULARY)
    request = Request(str(script), devices=8, target="cpu", fingerprints=True)
    report = tried(inspect(last_capture(request)), request, EVERYTHING, 600)
    (found,) = (each for each in report.findings if each.severity != "info")
    assert found.rule == "SS11"
    done = found.fixes[0].experiment
    assert done is not None
    assert (done.state, done.values, done.after.bytes) == ("tried", "equal", 0)
    assert done.after.memory < done.before.memory / 8
