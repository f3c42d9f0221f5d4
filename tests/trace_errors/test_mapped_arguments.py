"""A shard_map over explicit axes, called with arrays that nobody sharded: what is said to mend it does."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.finding_facts import verdict
from shardscope.inspector.report import Explanation
from shardscope.inspector.report.edits import edited
from shardscope.inspector.trace_errors.explain import explained

from tests.sweeps import sampled

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="what is explained are messages of JAX 0.10")

SCRIPT = """\
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

mesh = {mesh}


@partial(jax.shard_map, mesh=mesh, in_specs=(P("data", "model"), P("model")), out_specs=P("data"))
def layer(x, w):
    return {result}


inputs = jnp.ones((16, 32)), jnp.ones((32, 8))
"""

LOCAL = """\
import sys

import jax
import jax.numpy as jnp


def main(steps):
    @jax.jit
    def step(w):
        return w - jax.lax.pmean(w, "data") / 2

    w = jnp.ones(8)
    for _ in range(steps):
        w = step(w)
    return w


if __name__ == "__main__":
    main(int(sys.argv[1]))
"""

MESHES = (
    'jax.make_mesh((4, 2), ("data", "model"))',
    'jax.make_mesh((4, 2), axis_names=["data", "model"])',
    'jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit, AxisType.Explicit))',
)


def _explained(script: Path, mesh: str, result: str) -> tuple[Explanation, Capture]:
    """The explanation, and a capture of the script with its first fix."""
    script.write_text(SCRIPT.format(mesh=mesh, result=result))
    request = Request(f"{script}:layer")
    report = explained(inspect(last_capture(request)), request)
    found = report.explanation
    assert found is not None
    changed = edited(report.program, found.fixes[0].edits)
    assert changed is not None
    script.write_bytes(changed[str(script)])
    return found, last_capture(request)


@pytest.mark.parametrize("mesh", sampled(MESHES, 1, 1))
def test_the_mesh_with_automatic_axes_is_offered(tmp_path: Path, mesh: str) -> None:
    found, after = _explained(tmp_path / "script.py", mesh, "jax.lax.psum(x @ w, 'model')")
    assert verdict(found.fixes[0]) == "tried: runs, and gives the same values as on one device"
    assert after.complete
    assert after.failure is None
    line = 1 + SCRIPT.splitlines().index(next(each for each in SCRIPT.splitlines() if "in_specs" in each))
    assert [step.source.frame and step.source.frame.line for step in found.steps] == [None, line]


@pytest.mark.once
def test_an_error_behind_the_error_is_explained_too(tmp_path: Path) -> None:
    """The products of blocks are partial sums, which one device's product equals when they are summed."""
    found, after = _explained(tmp_path / "script.py", MESHES[0], "x @ w")
    assert found.fixes[0].helps
    assert "; then sum it over 'model'" in found.fixes[0].title
    assert after.complete
    assert after.failure is None


def test_a_function_that_only_main_has(tmp_path: Path) -> None:
    """Its script runs with each edit, as it does until the call that is captured."""
    script = tmp_path / "script.py"
    script.write_text(LOCAL)
    request = Request(f"{script}:step", argv=("3",))
    found = explained(inspect(last_capture(request)), request).explanation
    assert found is not None
    assert verdict(found.fixes[0]) == "tried: runs, and gives the same values as on one device"
